"""Names, messages and program output come from jobs, pods and buckets. No command lets them control the terminal."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from spotladder.checkpoints import outputs
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.outputs import Output
from spotladder.checkpoints.store import folder_of
from spotladder.cli import output, terminal
from spotladder.cli.terminal import Terminal, cleaned
from spotladder.core.model import JobSpec, JobState, Move, Stage, Tier
from spotladder.core.model.codec import dump
from spotladder.core.reasons import Reason
from spotladder.records import stored
from spotladder.records.model import Began, Moved, encode
from tests.checkpoints.builders import uploaded
from tests.cli.terminal import Answer, call
from tests.cli.test_cluster import kubeconfig

HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x1b[H\x1b[31mred\x1b[0m\x9b2J\x08\x7f\u202etxt [bold]b[/bold] [link=http://x]l[/link]"
)
SEEN = r"\u001b]0;owned"
MARKUP = "[bold]b[/bold] [link=http://x]l[/link]"
FORBIDDEN = ("\x1b", "\x07", "\x08", "\x7f", "\x9b", "\u202e")

JOB: dict[str, Any] = {
    "apiVersion": "spotladder.io/v1alpha1",
    "kind": "TieredJob",
    "metadata": {
        "name": "digits", "namespace": "default", "uid": "u", "resourceVersion": "1", "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {
        "workload": {"rayJob": {}}, "checkpoints": {"uri": ""},
        "ladder": {"tiers": [{"name": "spot", "capacity": "spot"}]},
    },
    "status": {
        "phase": "Failed", "state": dump(JobState(stage=Stage.FAILED)), "message": HOSTILE, "tier": HOSTILE,
        "attempt": 1,
        "attempts": [{
            "number": 1, "tier": HOSTILE, "reason": HOSTILE, "message": HOSTILE, "startStep": 0, "endStep": 5,
            "startedAt": "2026-01-01T00:00:00Z", "endedAt": "2026-01-01T00:01:00Z", "lastError": HOSTILE,
        }],
        "conditions": [{
            "type": "Completed", "status": "True", "reason": HOSTILE, "message": HOSTILE,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    },
}  # fmt: skip
EVENT = {
    "metadata": {"name": "e", "namespace": "default"}, "type": "Warning", "reason": HOSTILE, "message": HOSTILE,
    "involvedObject": {"kind": "TieredJob", "name": "digits", "uid": "u"}, "lastTimestamp": "2026-01-01T00:00:00Z",
}  # fmt: skip
POD = {
    "metadata": {"name": "digits-a001-head", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"containers": [{"name": "ray-job-submitter"}]},
    "status": {"phase": "Running", "containerStatuses": [{"name": "ray-job-submitter", "state": {"running": {}}}]},
}


class Api(BaseHTTPRequestHandler):
    """The API server of a cluster whose objects have hostile texts."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path.endswith("/log"):
            return self._send(f"{HOSTILE}\r\nstep 1\rstep 2\n".encode())
        if path.endswith("/tieredjobs/digits"):
            return self._send(json.dumps(JOB).encode())
        kinds = {"tieredjobs": JOB, "events": EVENT, "pods": POD}
        item = kinds.get(path.rpartition("/")[2])
        self._send(json.dumps({"metadata": {"resourceVersion": "1"}, "items": [item] if item else []}).encode())

    def _send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        return None


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SPOTLADDER_STATE", str(tmp_path / "states"))
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield kubeconfig(tmp_path, f"http://127.0.0.1:{server.server_port}")
        server.shutdown()


def assert_harmless(answer: Answer, *, code: int = 0, mentioned: str = SEEN) -> None:
    assert answer.code == code, answer.err
    for text in (answer.out, answer.err):
        assert not [each for each in FORBIDDEN if each in text]
    assert mentioned in answer.out + answer.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("get",), 0),
        (("get", "digits"), 0),
        (("logs", "digits"), 0),
        (("logs", "digits", "--all-pods"), 0),
        (("events", "digits"), 0),
        (("events", "digits", "-o", "json"), 0),
        (("watch", "digits"), 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_texts_of_a_cluster(
    arguments: tuple[str, ...], code: int, cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = call(capsys, *arguments, "--kubeconfig", cluster)
    assert_harmless(answer, code=code)
    if "json" in arguments:
        assert json.loads(answer.out)["items"][0]["message"].startswith("\x1b]0;")


def test_texts_of_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = CommitLog(open_store(tmp_path), "digits", uid="u")
    log.start(1, HOSTILE)
    records = (
        Began(1.0, HOSTILE, HOSTILE, JobSpec((Tier(HOSTILE),))),
        Moved(2.0, Move(Stage.IDLE, Stage.STARTING, Reason.STARTED, 1, HOSTILE)),
        Moved(3.0, Move(Stage.STARTING, Stage.FAILED, Reason.APPLICATION_FAILED, 1, HOSTILE, HOSTILE)),
    )
    stored.append(stored.of_job(log.store, "u"), [encode(record) for record in records], None)
    assert_harmless(call(capsys, "report", str(tmp_path / "digits")))


@pytest.mark.parametrize(
    "arguments", [("ls",), ("show",), ("show", "--step", "7"), ("verify",), ("show", "-o", "json")]
)
def test_texts_of_a_log(arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = CommitLog(open_store(tmp_path), "digits")
    writer = log.start(1, HOSTILE)
    writer.commit(7, [uploaded(writer, 7, "weights", b"x")[0]], total=9, metrics={HOSTILE: HOSTILE})
    log.end_as_controller("Failed", message=HOSTILE)
    name, *more = arguments
    answer = call(capsys, "checkpoints", name, str(tmp_path / "digits"), *more)
    assert_harmless(answer, mentioned=SEEN if arguments[0] in ("ls", "show") and "--step" not in arguments else "")


def test_stored_output(tmp_path: Path, cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = outputs.of_job(folder_of(open_store(tmp_path), "digits"), "u")
    outputs.keep(store, Output(2, 0, "driver"), HOSTILE)
    job = {**JOB, "spec": {**JOB["spec"], "checkpoints": {"uri": str(tmp_path)}}}
    job["status"] = {**JOB["status"], "attempt": 2, "attempts": [{**JOB["status"]["attempts"][0], "number": 2}]}
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(globals(), "JOB", job)
        patched.setitem(globals(), "POD", None)
        answer = call(capsys, "logs", "digits", "--attempt", "2", "--kubeconfig", cluster)
    assert_harmless(answer)


def test_the_cells_of_a_table_are_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(["name", "what"], [["a", HOSTILE], ["b", "x\nfake row"]], HOSTILE)
    text = capsys.readouterr().out
    assert text.count(SEEN) == text.count(MARKUP) == 2
    assert r"x\nfake row" in text
    assert not [each for each in FORBIDDEN if each in text]


def test_markup_is_text_and_control_sequences_of_rich_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.StringIO()
    monkeypatch.setattr(sys, "stdout", Terminal(drawn))
    made = terminal.console()
    made.print(HOSTILE, soft_wrap=True)
    assert drawn.getvalue() == rf"{SEEN}\u001b[2J\u001b[Hred\u009b2J\u007f\u202etxt {MARKUP}" + "\n"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("größe → 5 ✓", "größe → 5 ✓"),
        ("a\rb\r\nc", "a\nb\nc"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[", r"\u001b["),
        ("\x00", r"\u0000"),
    ],
)
def test_what_is_cleaned(text: str, left: str) -> None:
    assert cleaned(text) == left
