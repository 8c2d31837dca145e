"""Programs that evidently do not use the library, as their scripts show."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from spotladder.api import program_imports
from spotladder.api.document import documents_of
from spotladder.api.program_imports import LONGEST, MAX_FILES, without_library
from spotladder.api.tieredjob import TieredJob
from tests.api.builders import JOB, changed

USES = "from spotladder import train\n"
PLAIN = "import ray\n\nray.data.range(3).show()\n"
Files = Mapping[str, str | bytes]


def warned(folder: Path, files: Files, entrypoint: str = "python train.py") -> list[str]:
    """The warnings for a job with these files beside it."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    text = changed(JOB, ("entrypoint: python train.py", "entrypoint: |\n            " + entrypoint))
    (document,) = documents_of(text, "job.yaml")
    return [message for _, message in without_library(TieredJob.model_validate(document.data), [folder])]


UNUSED: dict[str, tuple[Files, str]] = {
    "a plain script": ({"train.py": PLAIN}, "python train.py"),
    "another package with a similar name": ({"train.py": "import spotladder_extras\n"}, "python train.py"),
    "in a sub folder": ({"src/train.py": PLAIN}, "python src/train.py"),
    "in a shell": ({"train.py": PLAIN}, "bash -c 'set -o pipefail; pip install x && exec python train.py'"),
    "with a launcher": ({"train.py": PLAIN}, "OMP_NUM_THREADS=1 torchrun --nproc-per-node=2 train.py"),
    "modules beside it": ({"train.py": "import model\n", "model.py": PLAIN}, "python train.py"),
}

NO_WARNING: dict[str, tuple[Files, str]] = {
    "it is imported": ({"train.py": USES}, "python train.py"),
    "in a function": ({"train.py": "def f():\n    import spotladder.train as t\n"}, "python train.py"),
    "by a module": ({"train.py": "import pkg.loop\n", "src/pkg/loop.py": USES}, "python train.py"),
    "by one of two programs": ({"a.py": PLAIN, "b.py": USES}, "python a.py && python b.py"),
    "one file is missing": ({"a.py": PLAIN}, "python a.py && python /opt/image-only/train.py"),
    "a name that the file system refuses": ({"train.py": PLAIN}, f"python train.py && python {'long' * 80}.py"),
    "a folder": ({"train.py/x": ""}, "python train.py"),
    "huge": ({"train.py": PLAIN + "#" * LONGEST}, "python train.py"),
    "many files": ({f"m{n}.py": PLAIN for n in range(MAX_FILES + 1)}, "python m0.py"),
    "it runs others": ({"train.py": "import subprocess\n"}, "python train.py"),
    "it calls others": ({"train.py": "import os\nos.execvp('python', ['python', 'b.py'])\n"}, "python train.py"),
    "a shell's script": ({"run.sh": "python train.py", "train.py": PLAIN}, "./run.sh"),
    "a program in the command": ({"train.py": PLAIN}, f"echo {'ab' * 32_000} | xxd -r -p | sh"),
    "another program": ({"train.py": PLAIN}, "my-trainer --script train"),
}


@pytest.mark.parametrize("name", UNUSED)
def test_a_program_that_does_not_import_the_library_is_named(tmp_path: Path, name: str) -> None:
    files, entrypoint = UNUSED[name]
    (message,) = warned(tmp_path, files, entrypoint)
    assert "does not import spotladder.train: it begins from the start after each loss" in message
    assert message.split()[2] in entrypoint


@pytest.mark.parametrize("name", NO_WARNING)
def test_a_program_that_may_use_the_library_is_not_named(tmp_path: Path, name: str) -> None:
    assert warned(tmp_path, *NO_WARNING[name]) == []


def test_a_folder_with_data_beside_the_program_is_not_searched_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_imports, "MAX_ENTRIES", 20, raising=False)
    assert warned(tmp_path, {"train.py": PLAIN, **{f"data/{n}.jpg": "" for n in range(20)}}) == []


def test_a_program_whose_own_checkpoints_are_committed_is_not_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PLAIN)
    (document,) = documents_of(changed(JOB, ("interval: 5m", "interval: 5m\n    programFolder: out")), "job.yaml")
    assert not list(without_library(TieredJob.model_validate(document.data), [tmp_path]))


def test_a_script_that_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.py")
    assert warned(tmp_path, {}) == []


@pytest.mark.parametrize(("beside", "count"), [({}, 1), ({"name": "other", "image": "x"}, 0)], ids=["alone", "sidecar"])
def test_a_jobset_is_named_if_all_of_its_containers_are_known(
    tmp_path: Path, beside: dict[str, str], count: int
) -> None:
    (tmp_path / "train.py").write_text(PLAIN)
    container = {"name": "train", "image": "train", "command": ["python", "train.py"]}
    pods = {
        "template": {"spec": {"template": {"spec": {"containers": [each for each in (container, beside) if each]}}}}
    }
    (document,) = documents_of(JOB, "job.yaml")
    workload = {"jobSet": {"template": {"spec": {"replicatedJobs": [{"name": "w", "replicas": 1, **pods}]}}}}
    data = {**document.data, "spec": {**document.data["spec"], "workload": workload}}
    assert len(list(without_library(TieredJob.model_validate(data), [tmp_path]))) == count


@pytest.mark.parametrize("path", ["../shared/train.py", "{}/shared/train.py"])
def test_a_program_outside_the_folder_of_the_job_is_searched_where_it_is(tmp_path: Path, path: str) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/train.py").write_text(USES, encoding="utf-8")
    assert warned(tmp_path / "job", {"convert.py": PLAIN}, f"python {path.format(tmp_path)}") == []
    (tmp_path / "shared/train.py").write_text(PLAIN, encoding="utf-8")
    assert len(warned(tmp_path / "job", {"convert.py": USES}, f"python {path.format(tmp_path)}")) == 1
