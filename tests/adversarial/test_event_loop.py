"""The controller parses foreign bytes in threads. One call into C holds the interpreter, and with it the event loop:
for the largest input, much shorter than a leader may take to renew its lease."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from spotladder.checkpoints.entries import LARGEST_ENTRY, MAX_VALUES
from spotladder.checkpoints.outputs import LARGEST_STORED
from spotladder.clusters.election import DURATION
from spotladder.output.redact import redacted

FILE = '{"name":"f","size":1,"crc":"00000000"},'
LARGEST: dict[str, tuple[Callable[[str], object], str]] = {
    "an entry with as many values": (json.loads, f"[{'{},' * (MAX_VALUES // 2 - 1)}1]"),
    "an entry with as many bytes": (json.loads, f"[{FILE * (LARGEST_ENTRY // len(FILE))}1]"),
    "an entry of one text": (json.loads, f'"{chr(92)}u0001{"a" * LARGEST_ENTRY}"'),
    "output that looks like keys": (redacted, "deadbeef" * (LARGEST_STORED // 8)),
    "output that looks like addresses": (redacted, "https://a:" * (LARGEST_STORED // 10)),
}


@pytest.mark.parametrize("case", LARGEST)
def test_the_largest_input_leaves_a_leader_time_to_renew_its_lease(case: str) -> None:
    parse, text = LARGEST[case]
    began = time.thread_time()
    parse(text)
    assert time.thread_time() - began < DURATION / 5
