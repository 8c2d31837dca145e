"""The archive of `spotladder submit --working-dir`."""

from __future__ import annotations

import io
import os
import subprocess
import sysconfig
import zipfile
from pathlib import Path

import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.removal import remove
from spotladder.cli.cluster import working_dir
from spotladder.cli.cluster.working_dir import Archive, with_source
from spotladder.errors import Refused


def folder_with(root: Path, **files: str) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def names(folder: Path) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(Archive.of(folder, None)[0].data)).namelist()


def test_the_same_files_are_the_same_archive(tmp_path: Path) -> None:
    first = folder_with(tmp_path / "a", **{"train.py": "pass", "lib/x.py": "1"})
    second = folder_with(tmp_path / "b", **{"lib/x.py": "1", "train.py": "pass"})
    os.utime(second / "train.py", (0, 0))
    (second / "lib/__pycache__").mkdir()
    (second / "lib/__pycache__/x.pyc").write_text("")
    folder_with(second, **{".venv/pyvenv.cfg": "", ".venv/lib/big.py": "", ".git/HEAD": ""})
    assert names(second) == ["lib/x.py", "train.py"]
    assert Archive.of(first, None)[0].sha256 == Archive.of(second, None)[0].sha256
    (second / "train.py").chmod(0o755)
    assert Archive.of(first, None)[0].sha256 != Archive.of(second, None)[0].sha256


RULES = """\
*.ckpt
!keep.ckpt
# data
/out
data/
a/**/z.py
logs/*.txt
**/cache
deep/**
te?t.py
[xy].py
[9-0].py
space\\ name.py
\\#hash.py
run[!_]last
epoch[[:digit:]]
[^]b-z]1
[a\\]]2
[b
data//
"""


def test_the_rules_are_those_of_git(tmp_path: Path) -> None:
    paths = [
        "x.ckpt", "keep.ckpt", "lib/x.ckpt", "out/a.py", "lib/out/a.py", "data/a", "lib/data/a", "a/z.py", "a/b/c/z.py",
        "b/a/z.py", "logs/a.txt", "logs/b/a.txt", "b/logs/a.txt", "b/cache/x", "deep/a/b.py", "test.py", "teest.py",
        "x.py", "z.py", "space name.py", "#hash.py", "lib/train.py", "sub/a.log", "sub/keep/b.log", "train.py",
        "run/last", "run-last", "epoch7", "epochs", "a1", "]1", "c1", "a2", "]2", "b2", "[b", "lib/Icon\r", "lib/Icon",
    ]  # fmt: skip
    root = folder_with(tmp_path, **dict.fromkeys(paths, "x"))
    (root / ".gitignore").write_text(RULES, encoding="utf-8-sig")
    (root / "sub/.gitignore").write_text("*.log\n!keep/*.log\n")
    (root / "lib/.gitignore").write_bytes(b"Icon\r\r\ntrain.py\x0c\n")
    git = ["git", "-c", "core.excludesFile=/dev/null", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.check_output([*git, "ls-files", "-z", "--others", "--exclude-standard"], text=True)
    assert names(root) == sorted(listed.rstrip("\0").split("\0"), key=lambda name: Path(name).parts)


def test_rayignore_excludes_too(tmp_path: Path) -> None:
    folder_with(tmp_path, **{"train.py": "", "data.bin": "", ".rayignore": "*.bin\n.rayignore\n"})
    assert names(tmp_path) == ["train.py"]


def test_a_file_whose_name_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.csv")).touch()
    with pytest.raises(Refused, match=r"'caf\\udce9\.csv' is not UTF-8: rename the file, or exclude it in \.rayignore"):
        Archive.of(tmp_path, None)
    (tmp_path / ".rayignore").write_text("caf?.csv\n")
    assert names(tmp_path) == [".rayignore"]


def test_a_folder_that_is_too_large_names_its_largest_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_dir, "LARGEST", 3 << 20)
    folder_with(tmp_path, **{"train.py": "", "data/big.bin": "x" * (4 << 20)})
    with pytest.raises(Refused, match=r"has 4 MiB, at most 3 MiB are allowed: .*\.rayignore; .*data/big.bin \(4 MiB\)"):
        Archive.of(tmp_path, None)


def test_requirements_must_be_among_the_files(tmp_path: Path) -> None:
    folder_with(tmp_path / "a", **{"reqs/all.txt": "torch"})
    other = folder_with(tmp_path / "b", **{"all.txt": ""}) / "all.txt"
    assert Archive.of(tmp_path / "a", tmp_path / "a/reqs/all.txt")[1] == "reqs/all.txt"
    with pytest.raises(Refused, match=r"all\.txt is not among the files of --working-dir"):
        Archive.of(tmp_path / "a", other)


PROJECT = """\
[project]
name = "words"
version = "1"
requires-python = ">=3.11"
dependencies = ["six"]
[dependency-groups]
dev = ["idna"]
[[tool.uv.index]]
url = "https://packages.example/simple"
default = true
"""

LOCKED = """
[[package]]
name = "{name}"
version = "1.17.0"
source = {{ registry = "https://packages.example/simple" }}
wheels = [{{ url = "https://packages.example/{name}-1.17.0-py3-none-any.whl", hash = "sha256:{digest}" }}]
"""

LOCK = f"""\
version = 1
revision = 3
requires-python = ">=3.11"
{LOCKED.format(name="idna", digest="1" * 64)}{LOCKED.format(name="six", digest="2" * 64)}
[[package]]
name = "words"
version = "1"
source = {{ virtual = "." }}
dependencies = [{{ name = "six" }}]
[package.dev-dependencies]
dev = [{{ name = "idna" }}]
[package.metadata]
requires-dist = [{{ name = "six" }}]
[package.metadata.requires-dev]
dev = [{{ name = "idna" }}]
"""


def use_own_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find the uv of this virtual environment, which need not be active, and let it ask no index."""
    monkeypatch.setenv("PATH", f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("UV_OFFLINE", "1")


def test_a_lock_of_uv_becomes_requirements_with_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_own_uv(monkeypatch)
    folder = folder_with(tmp_path / "a", **{"pyproject.toml": PROJECT, "uv.lock": LOCK})
    archive, requirements = Archive.of(folder, folder / "uv.lock")
    assert requirements == "uv.lock.txt"
    exported = zipfile.ZipFile(io.BytesIO(archive.data)).read("uv.lock.txt").decode()
    assert exported.split() == ["six==1.17.0", "\\", f"--hash=sha256:{'2' * 64}"]
    copy = folder_with(tmp_path / "b", **{"pyproject.toml": PROJECT, "uv.lock": LOCK})
    assert Archive.of(copy, copy / "uv.lock")[0].sha256 == archive.sha256


def test_a_lock_of_uv_that_cannot_be_used_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_own_uv(monkeypatch)
    changed = PROJECT.replace('["six"]', "[]").replace('["idna"]', "[]")
    lock = folder_with(tmp_path, **{"pyproject.toml": changed, "uv.lock": LOCK}) / "uv.lock"
    with pytest.raises(Refused, match=r"uv\.lock: uv export: .* needs to be updated"):
        Archive.of(tmp_path, lock)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Refused, match="needs uv on this machine: install it, or pass a requirements file"):
        Archive.of(tmp_path, lock)


def test_the_archive_is_beside_the_commits_and_removed_with_them(tmp_path: Path) -> None:
    archive, _ = Archive.of(folder_with(tmp_path / "a", **{"train.py": ""}), None)
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    body = {"metadata": {"name": "line"}, "spec": {"checkpoints": {"uri": f"file://{bucket}"}}}
    for _ in range(2):
        source = with_source(archive, None, body)["spec"]["source"]
    stored = bucket / "line" / "source" / f"{archive.sha256}.zip"
    assert source == {"uri": f"{open_store(f'file://{bucket}').uri}/line/source/{stored.name}"}
    assert stored.read_bytes() == archive.data
    remove(CommitLog(open_store(f"file://{bucket}"), "line"), ours=True)
    assert not stored.exists()


def test_a_bucket_that_this_machine_cannot_write_is_named(tmp_path: Path) -> None:
    archive, _ = Archive.of(folder_with(tmp_path / "a", **{"train.py": ""}), None)
    with pytest.raises(Refused, match="is not mounted on this machine"):
        archive.upload(f"file://{tmp_path}/missing", "line")
