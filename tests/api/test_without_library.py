"""Programs beside the job's file that do not use the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.api.document import documents_of
from spotladder.api.tieredjob import TieredJob
from spotladder.api.without_library import without_library
from tests.api.builders import JOB, changed

SCRIPT, LIBRARY = "import ray\n", "from spotladder import train\n"


def said(folder: Path, entrypoint: str, **files: str) -> list[str]:
    for name, text in files.items():
        file = folder / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (document,) = documents_of(changed(JOB, ("entrypoint: python train.py", f"entrypoint: {entrypoint}")), "job.yaml")
    return [message for _, message in without_library(TieredJob.model_validate(document.data), folder)]


@pytest.mark.parametrize("entrypoint", ["python infer.py", "bash -c 'python ./infer.py --rows 5 | tee log'"])
def test_a_program_without_the_library_begins_from_the_start(tmp_path: Path, entrypoint: str) -> None:
    (message,) = said(tmp_path, entrypoint, infer=SCRIPT, other=SCRIPT)
    assert "does not use spotladder.train, so the program begins from the start after each loss" in message


@pytest.mark.parametrize(
    ("entrypoint", "files"),
    [
        ("python infer.py", {"infer": LIBRARY}),
        ("python infer.py", {"infer": SCRIPT, "loop": LIBRARY}),
        ("python infer.py", {"infer": SCRIPT, "package__loop": LIBRARY}),
        ("python of_the_image.py", {"infer": SCRIPT}),
        ("python -m infer", {"infer": SCRIPT}),
        (f"python {'x' * 300}.py", {}),
    ],
)
def test_other_programs_are_not_judged(tmp_path: Path, entrypoint: str, files: dict[str, str]) -> None:
    assert said(tmp_path, entrypoint, **files) == []
