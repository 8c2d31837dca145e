"""Checks before the start of a run, and their error messages."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from spotladder.core.accounting.held_nodes import GIB
from spotladder.errors import EnvironmentFailure, InvalidSpec, SpotladderError
from spotladder.local import preflight
from spotladder.local.state import RunIdentity

FIELD = "spec.workload.ray.template.spec.entrypoint"


def script(folder: Path, text: str = "print('hello')\n", name: str = "train.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "entrypoint",
    [
        pytest.param("python train.py", id="a script"),
        pytest.param("python train.py --epochs 3", id="with arguments"),
        pytest.param("PYTHONHASHSEED=0 python train.py", id="with a variable"),
        pytest.param("./run.sh", id="a path"),
        pytest.param("PYTHONPATH=src python elsewhere.py", id="with a path for modules"),
        pytest.param("python -m http.server", id="a module"),
        pytest.param("cd elsewhere && python other.py", id="a shell construct is left to the shell"),
        pytest.param("python $SCRIPT", id="a variable is left to the shell"),
        pytest.param("python gone.py # don't wait", id="a comment is left to the shell"),
        pytest.param("exec python train.py", id="in place of the shell"),
        pytest.param("python ~/train.py", id="a script in the home folder"),
        pytest.param("~/run.sh", id="a program in the home folder"),
        pytest.param("other/bin/python elsewhere.py", id="another Python has its own modules"),
    ],
)
def test_entrypoints_that_may_work_are_accepted(
    tmp_path: Path, entrypoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "other/bin").mkdir(parents=True)
    script(tmp_path, "#!/bin/sh\n", "other/bin/python")
    script(tmp_path)
    script(tmp_path, "#!/bin/sh\n", "run.sh")
    script(tmp_path, "import no_such_module\n", "elsewhere.py")
    preflight.check_entrypoint(entrypoint, tmp_path)


def test_modules_may_be_on_a_path_of_the_jobs_environment(tmp_path: Path) -> None:
    script(tmp_path, "import no_such_module\n")
    with pytest.raises(EnvironmentFailure, match="no_such_module is not installed"):
        preflight.check_entrypoint("python train.py", tmp_path)
    preflight.check_entrypoint("python train.py", tmp_path, {"PYTHONPATH": "src"})


@pytest.mark.parametrize(
    ("entrypoint", "message"),
    [
        pytest.param("python trian.py", 'no file "trian.py"', id="no such script"),
        pytest.param("pyhton train.py", 'no program "pyhton"', id="no such program"),
        pytest.param("./missing.sh", r'no program "\./missing\.sh"', id="no such path"),
        pytest.param("exec python trian.py", 'no file "trian.py"', id="no such script in place of the shell"),
        pytest.param("", "is empty", id="empty"),
        pytest.param("  ", "is empty", id="blank"),
    ],
)
def test_an_entrypoint_that_cannot_run_is_rejected_with_its_field(
    tmp_path: Path, entrypoint: str, message: str
) -> None:
    script(tmp_path)
    with pytest.raises(InvalidSpec, match=message) as refused:
        preflight.check_entrypoint(entrypoint, tmp_path)
    assert (refused.value.path, refused.value.where) == (FIELD, ""), "the reader of the file adds the position"
    assert refused.value.exit_code == 2


def test_the_error_for_a_missing_framework_names_the_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "EXTRAS", {"no_such_framework": "jax"})
    path = script(tmp_path, "import os\n\n\ndef loop():\n    from no_such_framework.nn import Layer\n")
    with pytest.raises(EnvironmentFailure, match=r"train\.py:5: no_such_framework.*spotladder\[jax\]"):
        preflight.check_imports(path)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import os, sys, json\nfrom pathlib import Path\n", id="the standard library"),
        pytest.param("import beside\n", id="a module beside it"),
        pytest.param("import package.deep\n", id="a package beside it"),
        pytest.param("try:\n    import no_such_module\nexcept ImportError:\n    pass\n", id="one that may be missing"),
        pytest.param("if False:\n    import no_such_module\n", id="one under a condition"),
        pytest.param("from . import sibling\n", id="a relative one"),
        pytest.param("import __main__\n", id="the script itself"),
        pytest.param("import compiled\n", id="an extension beside it"),
        pytest.param("import sys\nsys.path.insert(0, 'src')\nimport no_such_module\n", id="one on a path that it adds"),
        pytest.param("", id="an empty script"),
    ],
)
def test_resolvable_and_optional_imports_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    script(tmp_path, name="beside.py")
    script(tmp_path, name=f"compiled{EXTENSION_SUFFIXES[0]}")
    (tmp_path / "package").mkdir()
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)  # as in the command
    preflight.check_imports(script(tmp_path, text))


@pytest.mark.parametrize("text", [b"def (:\n", b"\xff\xfe\x00\x01", b"x = 1\x00\n"])
def test_the_error_for_a_script_that_is_not_python_names_the_file(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(text)
    with pytest.raises(InvalidSpec, match=r"train\.py"):
        preflight.check_imports(path)


def test_memory_must_suffice_for_all_nodes_and_the_head() -> None:
    preflight.check_memory(4, available=2 * GIB)
    with pytest.raises(EnvironmentFailure, match=r"4 nodes need about 1\.4 GiB, 1\.0 GiB are free"):
        preflight.check_memory(4, available=GIB)


def test_a_full_disk_is_reported_before_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preflight.check_disk(tmp_path / "not" / "there" / "yet")
    monkeypatch.setattr(preflight, "LEAST_DISK", 1 << 80)
    with pytest.raises(EnvironmentFailure, match=r"disk is full.*free space"):
        preflight.check_disk(tmp_path)


def test_the_object_store_of_a_node_is_within_rays_limits() -> None:
    assert preflight.object_store(1) <= preflight.OBJECT_STORE_MOST
    assert preflight.object_store(10_000) == preflight.OBJECT_STORE_LEAST


RUN = RunIdentity(began=1.0, python="3.11", ray="2.58.1", uri="s3://bucket/a")


@pytest.mark.parametrize(
    ("here", "kind", "message"),
    [
        (
            RunIdentity(2.0, "3.12", "2.58.1", RUN.uri),
            EnvironmentFailure,
            r"Python 3\.11, this is Python 3\.12.*--fresh",
        ),
        (
            RunIdentity(2.0, "3.11", "2.55.0", RUN.uri),
            EnvironmentFailure,
            r"Ray 2\.58\.1, this is Ray 2\.55\.0.*--fresh",
        ),
        (RunIdentity(2.0, "3.11", "2.58.1", "s3://bucket/b"), InvalidSpec, r"s3://bucket/a.*s3://bucket/b"),
    ],
)
def test_resuming_needs_the_same_python_ray_and_checkpoint_address(
    here: RunIdentity, kind: type[SpotladderError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        preflight.check_same(RUN, here)
