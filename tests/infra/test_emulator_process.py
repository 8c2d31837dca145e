"""The emulator of AWS does not outlive the process that started it: real processes, with a small server instead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from spotladder.local.reaper import alive
from tests.docs.markdown import ROOT
from tests.infra import tool
from tests.waiting import eventually

SERVER = """\
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"%d" % os.getpid())

HTTPServer(("127.0.0.1", int(os.environ["GATEWAY_PORT"])), Answers).serve_forever()
"""
"""Answers every request with its pid, on the emulator's port."""

STARTER = """\
import pathlib, sys
from tests.infra import tool
with tool.emulator([sys.executable, "-c", sys.argv[1]], pathlib.Path(sys.argv[2])) as url:
    print(url, flush=True)
    sys.stdin.readline()
"""


def pid_of(url: str) -> int:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return int(answer.read())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_emulator_ends_with_the_killed_process_that_started_it(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTER, SERVER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        emulator = pid_of(starter.stdout.readline().strip())
        try:
            assert alive(emulator)
            starter.send_signal(number)
            starter.wait()
            assert eventually(lambda: not alive(emulator), 20.0)
        finally:
            starter.kill()
            with suppress(ProcessLookupError):
                os.kill(emulator, signal.SIGKILL)


def test_the_emulator_ends_after_its_block(tmp_path: Path) -> None:
    with tool.emulator([sys.executable, "-c", SERVER], tmp_path) as url:
        emulator = pid_of(url)
        assert alive(emulator)
    assert not alive(emulator)
