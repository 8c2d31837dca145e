"""Feeds changed and random bytes to each reader of foreign bytes. A reader may only raise its documented error.

`python -m tests.fuzz --seconds 600 entries frames` runs these targets; without names, all of them. A failure prints the
smallest input that was found: add it to a table test of that reader.
"""

from __future__ import annotations

import argparse
import gzip
import io
import random
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from spotladder.checkpoints import heartbeat
from spotladder.checkpoints.entries import decode
from spotladder.checkpoints.outputs import _text
from spotladder.cli.terminal import cleaned
from spotladder.clusters.kubeconfig import _understood
from spotladder.core.contract import Notice
from spotladder.core.model import JobState
from spotladder.core.model.codec import load_state, pack
from spotladder.errors import InvalidSpec, LogCorrupt, SpotladderError, TooLarge
from spotladder.operator.storage.program_output import _end_of_json
from spotladder.output.last_error import last_error, last_lines
from spotladder.output.outage import last_reported
from spotladder.output.redact import redacted
from spotladder.records.recorded import decoded
from spotladder.records.stored_reading import _lines
from spotladder.train.framing import STRANGER_LIMIT, FramedConnection
from tests.api.builders import JOB, WORLD
from tests.api.test_fuzz import check
from tests.checkpoints.memory_store import MemoryStore
from tests.released.formats import written

if TYPE_CHECKING:
    import socket

SLOWEST = 5.0
"""Maximum processor time in seconds of one call, far above that of any honest input."""

HOSTILE = [
    b"",
    b"1e999",
    b"-1",
    b"NaN",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b'""',
    b"9" * 400,
    b"[" * 2000,
    b'{"a":' * 2000,
    b"\x00",
    b"\xff\xfe",
    b"\n",
    b"\r",
    b"\x1b]0;x\x07",
    b"..",
    b"/",
    b"-eyJ" * 200,
    b"A" * 5000,
    b"\xe2\x80\xae",
    b"&a *a",
    b"!!x ",
    b"Traceback (most recent call last):\n",
    b'  File "x", line 1\n',
    b": ",
    b"- ",
    b"https://u:p@h/",
    b"AKIA" + b"A" * 16,
]

CONFIG = """\
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: c, user: u, namespace: n}}]
clusters: [{name: c, cluster: {server: "https://h:6443", certificate-authority-data: YQ==, tls-server-name: h}}]
users: [{name: u, user: {token: t, client-certificate-data: YQ==, client-key-data: YQ==}}]
"""
OUTPUT = """\
2026-01-01 INFO step 3
Traceback (most recent call last):
  File "train.py", line 5, in <module>
    main()
ValueError: no data: token=abc123 https://user:pw@host/x
spotladder: the checkpoint store s3://b does not answer
"""


@st.composite
def changed(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """One of the seeds with parts that were removed, repeated, replaced, or taken from elsewhere; or random bytes."""
    data = draw(st.sampled_from([*seeds, b""]))
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        part = draw(st.sampled_from(HOSTILE) | st.binary(max_size=20) | st.just(data[start:end] * 3))
        data = data[:start] + part + data[end:]
    return data


class Stranger:
    """A socket from which these bytes arrive, a few at a time."""

    def __init__(self, sent: bytes) -> None:
        self._sent = io.BytesIO(sent)

    def setsockopt(self, *_: object) -> None:
        """Sets no option."""

    settimeout = setsockopt

    def recv(self, most: int) -> bytes:
        return self._sent.read(min(most, 7))


def frames(data: bytes) -> None:
    for sent in (data, struct.pack(">I", len(data)) + data):
        connection = FramedConnection(cast("socket.socket", Stranger(sent)))
        while connection.receive(STRANGER_LIMIT, time.monotonic() + 60) is not None:
            pass


def output(data: bytes) -> None:
    text = data.decode(errors="replace")
    last_error(text)
    last_reported(text)
    assert len(last_lines(text, 20)) <= 20
    assert redacted(redacted(text)).count("abc123") <= text.count("abc123")
    assert "\x1b" not in cleaned(text)


def answers(data: bytes) -> None:
    for cut in (False, True):
        with suppress(ValueError, AttributeError, TypeError):  # What `program_output._tried` expects of a pod.
            _end_of_json((cut, data))


def packed(data: bytes) -> None:
    _lines(data)
    _text(data, "output")


def beat(data: bytes) -> None:
    store = MemoryStore()
    store.objects["attempts/0001/heartbeat.json"] = data
    heartbeat.read(store, 1, 1)


def kubeconfigs(data: bytes) -> None:
    _understood(data.decode(errors="replace"), None, "Secret x")


WRITTEN = {name: text.encode() for name, text in written().items()}
Target = tuple[Callable[[bytes], object], list[bytes], tuple[type[Exception], ...]]
TARGETS: dict[str, Target] = {
    "entries": (lambda data: decode(data, "log/x", 3), WRITTEN["log.jsonl"].splitlines(), (LogCorrupt,)),
    "states": (
        lambda data: load_state(data.decode(errors="replace")),
        [WRITTEN["state.json"], pack(JobState()).encode()],
        (InvalidSpec,),
    ),
    "records": (lambda data: list(decoded([data])), WRITTEN["records.jsonl"].splitlines(), ()),
    "heartbeats": (beat, [WRITTEN["heartbeat.json"]], ()),
    "notices": (lambda data: Notice.decode(data.decode(errors="replace")), [WRITTEN["notice.json"]], (ValueError,)),
    "frames": (frames, [b'{"rank": 1, "challenge": "abc"}'], (ValueError,)),
    "output": (output, [OUTPUT.encode()], ()),
    "answers": (answers, [b'{"logs": "step 1\\nstep \\u0032"}'], ()),
    "packed": (packed, [gzip.compress(OUTPUT.encode())], (LogCorrupt, TooLarge)),
    "kubeconfigs": (kubeconfigs, [CONFIG.encode()], (SpotladderError,)),
    "files": (lambda data: check(data.decode(errors="replace")), [WORLD.encode(), JOB.encode()], ()),
}
"""For each target: its reader, examples of what it reads, and the errors that it may raise."""


def run(name: str, seconds: float) -> int:
    """Run a target for this time; the number of its inputs. Raises the error of the smallest input that fails."""
    reader, seeds, errors = TARGETS[name]
    inputs = 0

    @settings(max_examples=500, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True)
    @given(changed(seeds))
    def batch(data: bytes) -> None:
        nonlocal inputs
        inputs += 1
        began = time.thread_time()
        with suppress(*errors):
            reader(data)
        assert time.thread_time() - began < SLOWEST, "too slow"

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        number = random.getrandbits(64)
        try:
            seed(number)(batch)()
        except BaseException:
            print(f"{name}: seed {number}")
            raise
    return inputs


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=60, help="seconds for each target")
    asked.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    given_ = asked.parse_args()
    for name in given_.targets or TARGETS:
        print(f"{name}: {run(name, given_.seconds):,} inputs", flush=True)


if __name__ == "__main__":
    main()
