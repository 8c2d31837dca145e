"""The archive of `spotladder submit --working-dir`."""

from __future__ import annotations

import io
import os
import subprocess
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
# data
*.ckpt
!keep.ckpt
/out
data/
a/**/z.py
logs/*.txt
**/cache
deep/**
te?t.py
[xy].py
space\\ name.py
\\#hash.py
"""


def test_the_rules_are_those_of_git(tmp_path: Path) -> None:
    paths = [
        "x.ckpt", "keep.ckpt", "lib/x.ckpt", "out/a.py", "lib/out/a.py", "data/a", "lib/data/a", "a/z.py", "a/b/c/z.py",
        "b/a/z.py", "logs/a.txt", "logs/b/a.txt", "b/logs/a.txt", "b/cache/x", "deep/a/b.py", "test.py", "teest.py",
        "x.py", "z.py", "space name.py", "#hash.py", "lib/train.py", "sub/a.log", "sub/keep/b.log", "train.py",
    ]  # fmt: skip
    root = folder_with(tmp_path, **dict.fromkeys(paths, "x"))
    (root / ".gitignore").write_text(RULES)
    (root / "sub/.gitignore").write_text("*.log\n!keep/*.log\n")
    git = ["git", "-c", "core.excludesFile=/dev/null", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.check_output([*git, "ls-files", "-z", "--others", "--exclude-standard"], text=True)
    assert names(root) == sorted(listed.rstrip("\0").split("\0"), key=lambda name: Path(name).parts)


def test_rayignore_excludes_too(tmp_path: Path) -> None:
    folder_with(tmp_path, **{"train.py": "", "data.bin": "", ".rayignore": "*.bin\n.rayignore\n"})
    assert names(tmp_path) == ["train.py"]


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


def test_the_archive_is_beside_the_commits_and_removed_with_them(tmp_path: Path) -> None:
    archive, _ = Archive.of(folder_with(tmp_path / "a", **{"train.py": ""}), None)
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    body = {"metadata": {"name": "line"}, "spec": {"checkpoints": {"uri": f"file://{bucket}"}}}
    for _ in range(2):
        source = with_source(archive, None, body)["spec"]["source"]
    stored = bucket / "line" / "source" / f"{archive.sha256}.zip"
    assert source == {
        "uri": f"{open_store(f'file://{bucket}').uri}/line/source/{stored.name}",
        "sha256": archive.sha256,
    }
    assert stored.read_bytes() == archive.data
    remove(CommitLog(open_store(f"file://{bucket}"), "line"), ours=True)
    assert not stored.exists()


def test_a_bucket_that_this_machine_cannot_write_is_named(tmp_path: Path) -> None:
    archive, _ = Archive.of(folder_with(tmp_path / "a", **{"train.py": ""}), None)
    with pytest.raises(Refused, match="is not mounted on this machine"):
        archive.upload(f"file://{tmp_path}/missing", "line")
