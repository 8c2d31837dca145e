"""The archive of a job in its pod."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from spotladder.train.source import main, unpack


def archive(folder: Path) -> str:
    file = folder / "files.zip"
    with zipfile.ZipFile(file, "w") as files:
        script = zipfile.ZipInfo("bin/start.sh")
        script.external_attr = 0o755 << 16
        files.writestr(script, "#!/bin/sh\n")
        files.writestr("train.py", "")
    named = file.with_name(f"{hashlib.sha256(file.read_bytes()).hexdigest()}.zip")
    return f"file://{file.rename(named)}"


def test_files_keep_whether_they_are_programs(tmp_path: Path) -> None:
    unpack(tmp_path / "source", archive(tmp_path))
    assert (tmp_path / "source/bin/start.sh").stat().st_mode & 0o100
    assert not (tmp_path / "source/train.py").stat().st_mode & 0o100


def test_another_archive_than_the_job_names_is_refused(tmp_path: Path) -> None:
    named = Path(archive(tmp_path).removeprefix("file://"))
    other = named.rename(named.with_name(f"{'0' * 64}.zip"))
    with pytest.raises(InvalidSpec, match=f"has the SHA-256 {named.stem}, not that of its name"):
        unpack(tmp_path / "source", f"file://{other}")
    assert not (tmp_path / "source").exists()
    with pytest.raises(InvalidSpec, match="does not exist: run spotladder submit again"):
        unpack(tmp_path / "source", f"file://{named}")


def test_a_missing_requirements_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=r"requirements\.txt is not in the archive"):
        main([str(tmp_path), archive(tmp_path), "requirements.txt"])
