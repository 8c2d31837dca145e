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
    assert answer.err.startswith(f"error: {file}: is not a YAML text file (binary data or not UTF-8 at byte 4)")


@pytest.mark.parametrize("port", ["65536", "99999", "9" * 30])
def test_a_port_out_of_range_is_rejected(port: str, capsys: Capture, tmp_path: Path) -> None:
    answer = call(capsys, "controller", "--listen", f"127.0.0.1:{port}", "--kubeconfig", tmp_path / "none")
    said = f"error: --listen: the port must be at most 65535, got {port}: specify HOST:PORT, such as 127.0.0.1:8080\n"
    assert (answer.code, answer.out, answer.err) == (2, "", said)
