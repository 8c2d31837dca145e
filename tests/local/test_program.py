"""The program of an attempt: the driver is a real process, and the test takes the role of Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from spotladder.core.model import Exit
from spotladder.core.reasons import Reason
from spotladder.local import driver
from spotladder.local.program import Program
from spotladder.local.reaper import alive
from spotladder.records.model import Beat
from tests.waiting import eventually


class Supervised:
    """A program and its driver, started as Ray's job supervisor starts it."""

    def __init__(self, tmp_path: Path, entrypoint: str) -> None:
        self.program = Program(tmp_path / "attempt", entrypoint, tmp_path)
        command = [sys.executable, "-I", "-S", driver.__file__, str(self.program.folder)]
        self.process = subprocess.Popen(command, start_new_session=True)

    def __enter__(self) -> Supervised:
        assert eventually((self.program.folder / "waiting.json").exists)
        return self

    def __exit__(self, *_: object) -> None:
        self.program.kill()
        self.process.kill()
        self.process.wait()

    def ended(self) -> Exit | None:
        assert eventually(lambda: self.program.exit() is not None)
        return self.program.exit()


@pytest.mark.parametrize(("code", "expected"), [(75, Exit.INTERRUPTED), (1, Exit.FAILED)])
def test_the_exit_code_of_the_program_determines_the_outcome(tmp_path: Path, code: int, expected: Exit) -> None:
    with Supervised(tmp_path, f"exit {code}") as job:
        job.program.release()
        assert job.ended() is expected
        assert job.program.exit_code == code
        assert job.process.wait(600) == code


def test_the_program_starts_when_it_is_released_and_runs_in_the_folder_of_the_job(tmp_path: Path) -> None:
    with Supervised(tmp_path, "pwd; echo to stderr >&2") as job:
        assert job.program.started_at is None
        assert job.program.exit() is None
        before = time.time()
        job.program.release()
        job.ended()
        assert job.program.started_at is not None
        assert 0 <= job.program.started_at - before < 5
        assert job.program.log.read_text().split("\n")[:2] == [str(tmp_path), "to stderr"]


RAISES = """\
import sys

def load():
    print("\\033[31mretry\\033[0m", file=sys.stderr)
    raise ValueError("\\033[1mno data in s3://b/x\\033[0m")

try:
    load()
finally:
    import atexit
    atexit.register(print, "\\033[36mI0000 closing\\033[0m")
"""


def test_the_message_has_the_last_exception_without_terminal_codes(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RAISES)
    with Supervised(tmp_path, f"{sys.executable} train.py") as job:
        job.program.release()
        job.ended()
        log = job.program.log
        assert log.read_text().splitlines()[-1] == "\033[36mI0000 closing\033[0m", "the last line says nothing"
        assert job.program.last_words() == (
            f"exit code 1: ValueError: no data in s3://b/x (train.py:5) (full log: {log})"
        )


def test_a_killed_driver_process_is_reported_as_lost(tmp_path: Path) -> None:
    with Supervised(tmp_path, "exec sleep 600") as job:
        job.program.release()
        assert eventually(lambda: job.program.started_at is not None)
        child = json.loads((job.program.folder / "started.json").read_text())["pid"]
        job.process.kill()
        job.process.wait()
        os.kill(child, signal.SIGKILL)  # No reaper watches here.
        assert job.ended() is Exit.LOST
        assert "was killed" in job.program.last_words()


def test_killing_the_program_ends_its_driver_and_its_children(tmp_path: Path) -> None:
    with Supervised(tmp_path, "trap '' TERM; sleep 600") as job:
        job.program.release()
        assert eventually(lambda: job.program.started_at is not None)
        child = json.loads((job.program.folder / "started.json").read_text())["pid"]
        job.program.kill()
        assert eventually(lambda: not alive(child))
        assert job.process.wait(600) == -signal.SIGKILL
        job.program.kill()


def test_a_second_notice_does_not_replace_the_first(tmp_path: Path) -> None:
    program = Program(tmp_path / "attempt", "true", tmp_path)
    program.ask_to_stop(Reason.EVICTION_NOTICE, 12.5)
    program.ask_to_stop(Reason.STOP_REQUESTED, 99.0)
    assert json.loads(program.notice_file.read_text()) == {
        "kind": "notice",
        "deadline": 12.5,
        "reason": "EvictionNotice",
    }


@pytest.mark.parametrize(
    "reached",
    ["{}", "[]", '{"stepped": "soon", "joined": 4, "tomorrow": 5}', f'{{"stepped": 1{"0" * 400}, "restored": NaN}}'],
)
def test_the_milestones_in_a_heartbeat_are_read_and_anything_else_is_ignored(tmp_path: Path, reached: str) -> None:
    program = Program(tmp_path / "attempt", "true", tmp_path)
    (tmp_path / "attempt" / "started.json").write_text('{"pid": 1, "at": 3.0}')
    program.heartbeat_file.write_text(f'{{"step": 7, "reached": {reached}}}')
    assert program.beat(9.0, 1) == Beat(9.0, 1, 7)
    assert program.started_at == 3.0
    assert program.reached == {"program": 3.0, **({"joined": 4.0} if "joined" in reached else {})}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '{"total": 3}', '{"step": "three"}', '{"step": -1}', '{"step": Infinity}'),
        *(f'{{"step": 1{"0" * 400}}}', f'{{"step": 1, "total": 1{"0" * 30}}}', f'{{"step": 1, "loss": 1{"0" * 400}}}'),
    ],
)
def test_an_invalid_heartbeat_is_ignored(tmp_path: Path, text: str) -> None:
    program = Program(tmp_path / "attempt", "true", tmp_path)
    program.heartbeat_file.write_text(text)
    assert program.beat(1.0, 1) is None


def test_an_outage_at_an_impossible_time_is_none(tmp_path: Path) -> None:
    program = Program(tmp_path / "attempt", "true", tmp_path)
    program.heartbeat_file.write_text(f'{{"step": 1, "store": {{"since": 1{"0" * 400}, "message": "x"}}}}')
    assert program.outage() is None


TOKEN = "t0ken"


class Agent:
    """A fake of Ray's job agent that accepts submissions."""

    def __init__(self, status: int, text: str) -> None:
        self.bodies: list[dict[str, object]] = []
        self.tokens: set[str] = set()
        agent = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                agent.tokens.add(self.headers["Authorization"])
                agent.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def test_the_program_is_submitted_once_and_without_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    agent = Agent(200, "{}")
    program = Program(tmp_path / "attempt", "true", tmp_path)
    for _ in range(3):
        program.submit(agent.url, "digits-0001", {"SPOTLADDER_JOB": "digits"}, token=TOKEN)
    assert eventually(lambda: bool(agent.bodies))
    agent.server.shutdown()
    (body,) = agent.bodies
    assert agent.tokens == {f"Bearer {TOKEN}"}
    assert body["submission_id"] == "digits-0001-1"
    assert body["runtime_env"] == {"env_vars": {"SPOTLADDER_JOB": "digits"}}
    assert program.submission_error is None


def test_a_submission_without_effect_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spotladder.local.program.SUBMIT_RETRY_INTERVAL", 0.0)
    agent = Agent(200, "{}")
    program = Program(tmp_path / "attempt", "true", tmp_path)
    program.submit(agent.url, "digits-0001", {}, token=TOKEN)
    program.submit(agent.url, "digits-0001", {}, token=TOKEN)
    (program.folder / "claimed").touch()
    program.submit(agent.url, "digits-0001", {}, token=TOKEN)
    assert eventually(lambda: len(agent.bodies) == 2)
    agent.server.shutdown()
    assert sorted(str(body["submission_id"]) for body in agent.bodies) == ["digits-0001-1", "digits-0001-2"]


def test_a_refused_submission_is_reported(tmp_path: Path) -> None:
    agent = Agent(500, "Traceback\nRuntimeError: no worker could be started\n")
    program = Program(tmp_path / "attempt", "true", tmp_path)
    program.submit(agent.url, "digits-0001", {}, token=TOKEN)
    assert eventually(lambda: program.submission_error is not None)
    agent.server.shutdown()
    assert program.submission_error == "Ray refused the program: RuntimeError: no worker could be started"


DAEMON = (
    "import os, sys; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
    "open(sys.argv[1], 'w').write(str(os.getpid())); os.execve('/bin/sleep', ['sleep', '600'], {})"
)


@pytest.mark.skipif(sys.platform != "linux", reason="macOS has no child subreapers")
@pytest.mark.parametrize("how", ["kill", "go_with_node"])
def test_a_daemon_in_its_own_session_without_environment_ends_with_its_program(tmp_path: Path, how: str) -> None:
    """Regression: `setsid` children outlived their attempt, and those of `env -i` outlived the run."""
    with Supervised(tmp_path, f'{sys.executable} -c "{DAEMON}" daemon.pid; echo $$ > shell; sleep 600') as job:
        job.program.release()
        noted = [tmp_path / "daemon.pid", tmp_path / "shell"]
        assert eventually(lambda: all(file.exists() and file.read_text() for file in noted))
        daemon, shell = (int(file.read_text()) for file in noted)
        assert alive(daemon)
        getattr(job.program, how)()
        assert not alive(daemon)
        assert not alive(shell)
        if how == "go_with_node":
            assert job.ended() is Exit.FAILED, "the driver records the end"
            assert job.program.exit_code == -signal.SIGKILL


def test_orphaned_processes_are_reaped(tmp_path: Path) -> None:
    with Supervised(tmp_path, "for n in 1 2 3; do sh -c 'sleep 0 & sleep 0 &'; done; touch done; sleep 600") as job:
        job.program.release()
        assert eventually((tmp_path / "done").exists)
        children = Path(f"/proc/{job.process.pid}/task/{job.process.pid}/children")
        if children.exists():
            assert eventually(lambda: len(children.read_text().split()) == 1)
