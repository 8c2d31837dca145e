"""The program of one attempt: submitted through Ray's job submission, started when the gang is ready, observed through
files.

`driver.py` runs the program and documents the files. All functions return at once; the submission, which waits for
Ray, runs in a thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from spotladder.checkpoints.entries import LARGEST_INTEGER
from spotladder.core.contract import Milestone, Notice, NoticeKind, Variable
from spotladder.core.model import Exit, Instant
from spotladder.core.reasons import Reason
from spotladder.local import driver
from spotladder.local.output import end_of
from spotladder.local.reaper import alive, end_all, end_below
from spotladder.output.last_error import last_error
from spotladder.output.outage import Outage
from spotladder.output.redact import redacted, secret_values
from spotladder.records.model import Beat

SUBMIT_TIMEOUT = 60.0
"""Timeout in seconds of a submission; on a busy machine the first one takes several seconds."""

SUBMIT_RETRY_INTERVAL = 30.0
"""Seconds after which a submission that has started no process is repeated."""

LOG_TAIL = 65_536
"""Number of bytes at the end of the log that are searched for the program's error."""

EXIT_CODE_TIMEOUT = 0.5
"""Seconds to wait for the program's exit code after the driver's process is gone."""


class Program:
    """One attempt's program."""

    def __init__(self, folder: Path, entrypoint: str, cwd: Path) -> None:
        self.folder = folder
        self.submission_error: str | None = None
        self._submitted_at: float | None = None
        self._submissions = 0
        self._gone_since: float | None = None
        self._beat: Beat | None = None
        self._started_at: Instant | None = None
        self._reached: Mapping[Milestone, Instant] = {}
        folder.mkdir(parents=True, exist_ok=True)
        driver.note(folder / "program.json", entrypoint=entrypoint, cwd=str(cwd))

    @property
    def notice_file(self) -> Path:
        """The notice file, through which the runner asks the program to stop."""
        return self.folder / "notice.json"

    @property
    def heartbeat_file(self) -> Path:
        """The heartbeat file, in which the program reports its progress."""
        return self.folder / "heartbeat.json"

    @property
    def log(self) -> Path:
        """The file with the program's output."""
        return self.folder / "driver.log"

    def submit(self, agent: str, name: str, environment: Mapping[str, str], *, token: str) -> None:
        """Submit the program to Ray, whose agent requires the token. The runner calls this repeatedly; a submission
        that has started no process in time is repeated.

        Ray may schedule a job's supervisor on a node that has just died, and then abandons the job without an error.
        """
        now = time.monotonic()
        waited_for = self._submitted_at is not None and now - self._submitted_at < SUBMIT_RETRY_INTERVAL
        if waited_for or (self.folder / "claimed").exists():
            return
        self._submitted_at = now
        self._submissions += 1
        command = shlex.join([sys.executable, "-I", "-S", driver.__file__, str(self.folder)])
        body = {
            "entrypoint": command,
            "submission_id": f"{name}-{self._submissions}",
            "runtime_env": {"env_vars": dict(environment)},
        }
        threading.Thread(target=self._post, args=(f"{agent}/api/job_agent/jobs/", body, token), daemon=True).start()

    def _post(self, url: str, body: object, token: str) -> None:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        request = Request(url, json.dumps(body).encode(), headers)  # noqa: S310 – our agent
        deadline = time.monotonic() + SUBMIT_TIMEOUT
        while not (self.folder / "cancelled").exists():
            try:
                # Connect directly to this machine, whatever proxy the environment sets.
                with build_opener(ProxyHandler({})).open(request, timeout=SUBMIT_TIMEOUT):
                    return
            except HTTPError as error:
                lines = error.read().decode(errors="replace").strip().splitlines() or [str(error)]
                self.submission_error = f"Ray refused the program: {lines[-1]}"
                return
            except OSError as error:  # The agent has a port but does not listen yet.
                if time.monotonic() > deadline:
                    self.submission_error = f"Ray does not accept the program: {error}"
                    return
                time.sleep(0.1)

    def release(self) -> None:
        """Start the program, once the gang is ready."""
        (self.folder / "go").touch()

    @property
    def released(self) -> bool:
        """Whether `release` has started the program."""
        return (self.folder / "go").exists()

    @property
    def started_at(self) -> Instant | None:
        """When the program's process started."""
        if self._started_at is None and (started := _read(self.folder / "started.json")):
            self._started_at = float(started["at"])
        return self._started_at

    @property
    def reached(self) -> dict[Milestone, Instant]:
        """The milestones of the program's start, as of the last `beat`."""
        started = {} if self.started_at is None else {Milestone.PROGRAM: self.started_at}
        return {**started, **self._reached}

    @property
    def exit_code(self) -> int | None:
        """The exit code of the program; None while it runs or if it is unknown."""
        exited = _read(self.folder / "exited.json")
        return int(exited["code"]) if exited else None

    def exit(self) -> Exit | None:
        """How the program ended; LOST if its process disappeared without an exit code."""
        if (code := self.exit_code) is not None:
            return Exit.of_code(code)
        waiting = _read(self.folder / "waiting.json")
        if waiting is None or alive(int(waiting["pid"])):
            return None
        self._gone_since = self._gone_since or time.monotonic()
        return Exit.LOST if time.monotonic() - self._gone_since > EXIT_CODE_TIMEOUT else None

    def last_words(self) -> str:
        """Why the program ended, in one line: exit code or signal, exception and its location, and the log file."""
        code = self.exit_code
        how = "its process was killed" if code is None else f"exit code {code}" if code >= 0 else f"signal {-code}"
        reason = redacted(last_error(end_of(self.log, LOG_TAIL)), secret_values(os.environ))
        return f"{how}{reason and ': '}{reason} (full log: {self.log})"

    def ask_to_stop(self, reason: Reason, deadline: Instant) -> None:
        """Write the notice unless one exists: the first notice counts."""
        if not self.asked_to_stop:
            driver.write(self.notice_file, Notice.of(reason, deadline).encode())

    def ask_to_commit(self, reason: Reason, asked_at: Instant) -> None:
        """Write the request to commit, unless the program was asked to stop."""
        text = Notice.of_commit(reason, asked_at).encode()
        if not self.asked_to_stop and _read(self.notice_file) != json.loads(text):
            driver.write(self.notice_file, text)

    def take_over(self) -> None:
        """Let the program of a standby attempt start."""
        if not self.notice_file.exists():
            driver.write(self.notice_file, Notice.of_takeover().encode())

    @property
    def asked_to_stop(self) -> bool:
        """Whether the notice file asks the program to stop."""
        notice = _read(self.notice_file)
        return notice is not None and notice.get("kind") not in (NoticeKind.TAKE_OVER, NoticeKind.COMMIT)

    @property
    def phase(self) -> str:
        """The program's phase before its first step is done (`train.heartbeat`); "" if it reports none."""
        return str((_read(self.heartbeat_file) or {}).get("phase", ""))

    def beat(self, now: Instant, attempt: int) -> Beat | None:
        """The last heartbeat of this attempt. `at` is the time of this observer: the program's clock is not trusted."""
        beat = _read(self.heartbeat_file)
        if beat is not None:
            self._reached = Milestone.reported(beat.pop("reached", None))
            beat.pop("at", None)
            try:
                step, total = int(beat.pop("step")), int(beat.pop("total", 0))
                metrics = {key: float(value) for key, value in beat.items() if isinstance(value, (int, float))}
            except (KeyError, TypeError, ValueError, OverflowError):
                return self._beat
            possible = all(0 <= one < LARGEST_INTEGER for one in (step, total))
            if possible and (self._beat is None or self._beat.step != step):
                self._beat = Beat(now, attempt, step, total, metrics)
        return self._beat

    def size(self) -> int | None:
        """The number of workers with which an elastic program trains, from its heartbeat; None if it reports none."""
        size = (_read(self.heartbeat_file) or {}).get("workers")
        return size if isinstance(size, int) else None

    def outage(self) -> Outage | None:
        """When the checkpoint store became unavailable to the program, and the error."""
        store = (_read(self.heartbeat_file) or {}).get("store")
        try:
            return Outage(float(store["since"]), str(store["message"])) if store else None
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    def hang(self) -> str:
        """The time for which the program has made no step, as text; "" if it does not hang."""
        return str((_read(self.heartbeat_file) or {}).get("hang", ""))

    def kill(self) -> None:
        """Kill the program and all processes that it has started."""
        (self.folder / "cancelled").touch()
        sessions = set()
        waiting = _read(self.folder / "waiting.json")
        if waiting is not None and alive(int(waiting["pid"])):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                sessions = {os.getsid(int(waiting["pid"]))} & {int(waiting["session"])}
        end_all(f"{Variable.HEARTBEAT}={self.heartbeat_file}", sessions)

    def go_with_node(self) -> None:
        """Kill the program's processes, as the loss of their machine would. The driver survives and records the end."""
        waiting = _read(self.folder / "waiting.json")
        if waiting is not None and alive(int(waiting["pid"])):
            end_below(int(waiting["pid"]))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
