"""A commit and a resume need memory for the parts that are in flight, not for the checkpoint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkpoints import little_memory
from tests.checkpoints.gcs import BUCKET, google

SIZE = 96 << 20
IN_FLIGHT = 64  # MiB


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is that of Linux")
@pytest.mark.parametrize("bucket", [False, True], ids=["disk", "bucket"])
def test_a_large_file_is_streamed(bucket: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with (source / "file").open("wb") as file:
        file.truncate(SIZE)
    with google(monkeypatch):
        uri = f"gs://{BUCKET}/log" if bucket else str(tmp_path / "log")
        command = [sys.executable, "-m", little_memory.__name__, uri, str(source), str(tmp_path)]
        used = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    assert int(used) < IN_FLIGHT
