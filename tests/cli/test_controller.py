"""`spotladder controller`: errors for invalid settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import call

Capture = pytest.CaptureFixture[str]


def test_settings_that_are_not_utf_8_are_rejected(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_bytes(b"\x7fELF\xff")
    answer = call(capsys, "controller", "--config", file)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {file}: is not a YAML text file")
