"""The controller parses foreign bytes in threads, and specs in the event loop. One call into C holds the interpreter,
and with it the event loop: for the largest input, much shorter than a leader may take to renew its lease."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from spotladder.api.stored import MAX_SPEC, JobRecord
from spotladder.checkpoints.entries import LARGEST_ENTRY, MAX_VALUES
from spotladder.checkpoints.outputs import LARGEST_STORED
from spotladder.clusters.election import DURATION
from spotladder.errors import InvalidSpec
from spotladder.operator.reconcile.specs import parsed_spec
from spotladder.output.redact import redacted
from tests import ways

OBJECT = 1_400_000
"""Bytes of a TieredJob that the API server stores."""


def parsed(groups: str) -> None:
    """Parse the spec of a job with these worker groups."""
    spec = ways.spec()
    spec["workload"]["ray"]["template"]["spec"]["rayClusterSpec"]["workerGroupSpecs"] = json.loads(groups)
    metadata = {"name": "digits", "namespace": "team-a", "uid": "u"}
    with suppress(InvalidSpec):
        parsed_spec(JobRecord.of({"metadata": metadata, "spec": spec}))


def groups_of(size: int) -> str:
    return json.dumps([{"groupName": f"g{index}"} for index in range((size - 1_000) // 23)])


FILE = '{"name":"f","size":1,"crc":"00000000"},'
LARGEST: dict[str, tuple[Callable[[str], object], str]] = {
    "an entry with as many values": (json.loads, f"[{'{},' * (MAX_VALUES // 2 - 1)}1]"),
    "an entry with as many bytes": (json.loads, f"[{FILE * (LARGEST_ENTRY // len(FILE))}1]"),
    "an entry of one text": (json.loads, f'"{chr(92)}u0001{"a" * LARGEST_ENTRY}"'),
    "a spec with as many bytes": (parsed, groups_of(MAX_SPEC)),
    "a spec with more bytes": (parsed, groups_of(OBJECT)),
    "output that looks like keys": (redacted, "deadbeef" * (LARGEST_STORED // 8)),
    "output that looks like addresses": (redacted, "https://a:" * (LARGEST_STORED // 10)),
}


@pytest.mark.parametrize("case", LARGEST)
def test_the_largest_input_leaves_a_leader_time_to_renew_its_lease(case: str) -> None:
    parse, text = LARGEST[case]
    began = time.thread_time()
    parse(text)
    assert time.thread_time() - began < DURATION / 5
