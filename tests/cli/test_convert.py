"""`spotladder convert` as a user sees it."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.terminal import call
from tests.conversion.sources import FOLDER

Capture = pytest.CaptureFixture[str]


def test_the_result_is_a_valid_file_with_comments(capsys: Capture, tmp_path: Path) -> None:
    answer = call(capsys, "convert", FOLDER / "jobset-rules.yaml", "--tier", "spot-b", "--checkpoints", "s3://b/hail")
    assert (answer.code, answer.err) == (0, "")
    assert "# Removed backoffLimit: 6. It is set by spotladder" in " ".join(answer.out.split())
    file = tmp_path / "job.yaml"
    file.write_text(answer.out, encoding="utf-8")
    assert call(capsys, "validate", "--for-cluster", file).code == 0


def test_a_removed_field_stands_where_it_was(capsys: Capture) -> None:
    lines = call(capsys, "convert", FOLDER / "ray-live.yaml").out.splitlines()
    place = next(index for index, line in enumerate(lines) if "# Removed jobId" in line)
    assert lines[place - 1].strip().startswith("entrypoint:")
    assert lines[place + 1].strip().startswith("backoffLimit:")


@pytest.mark.parametrize("to", ["source.yaml", "edited.yaml", "link.yaml"])
def test_the_result_replaces_no_file(to: str, capsys: Capture, tmp_path: Path) -> None:
    """Neither its source nor an earlier result that the user has edited."""
    given = (FOLDER / "batch-plain.yaml").read_text(encoding="utf-8")
    for name in ("source.yaml", "edited.yaml"):
        (tmp_path / name).write_text(given, encoding="utf-8")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "gone.yaml")
    answer = call(capsys, "convert", tmp_path / "source.yaml", "--to", tmp_path / to)
    assert answer.code == 2
    assert f"--to: {tmp_path / to} already exists: remove it, or name another file" in answer.err
    texts = {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir() if file.exists()}
    assert texts == {"source.yaml": given, "edited.yaml": given}


def test_several_files_become_one_with_all_jobs(capsys: Capture, tmp_path: Path) -> None:
    to = tmp_path / "jobs.yaml"
    answer = call(capsys, "convert", FOLDER / "batch-plain.yaml", FOLDER / "sky-cpu.yaml", "--to", to)
    assert (answer.code, answer.out) == (0, "")
    assert answer.err == f"{to}: sparrow, skypilot-task; 3 fields were removed, see the comments\n"
    assert to.read_text(encoding="utf-8").count("kind: TieredJob") == 2
    assert call(capsys, "validate", "--for-cluster", to).code == 0


def test_standard_input(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO((FOLDER / "batch-plain.yaml").read_bytes())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=raw))
    answer = call(capsys, "convert", "-")
    assert answer.code == 0
    assert "# Converted from the Job sparrow (<stdin>:1:1) by spotladder convert." in answer.out


@pytest.mark.parametrize(
    ("text", "error"),
    [("", "{file}: is empty; specify the manifest of a job\n"), ("- a\n", "{file}:1:1: must be a mapping, not ")],
)
def test_a_file_that_is_no_job_is_an_error(capsys: Capture, tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "given.yaml"
    file.write_text(text, encoding="utf-8")
    answer = call(capsys, "convert", file)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {error.format(file=file)}")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--tier", "spot", "--tier", "spot"), 2, 'error: --tier: "spot" is already the name of'),
        (("--tier", "Spot A"), 2, "'Spot A' is not a valid Kubernetes name"),
        (("--checkpoints", "ftp://a/b"), 2, "error: --checkpoints: scheme "),
        (("--to", "{folder}/missing/job.yaml"), 5, "error: --to: "),
    ],
)
def test_an_error_of_an_option_names_the_option(
    options: tuple[str, ...], code: int, said: str, capsys: Capture, tmp_path: Path
) -> None:
    answer = call(capsys, "convert", FOLDER / "ray-plain.yaml", *(part.format(folder=tmp_path) for part in options))
    assert answer.code == code
    assert said in answer.err
