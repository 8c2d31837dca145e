"""A program hangs: its stacks are kept, and the next attempt resumes from the newest commit."""

from __future__ import annotations

import re

from spotladder.output.last_error import plain
from tests.e2e.world import E2eCluster

HANGS_AT = 22
"""The step at which rank 1 of the first attempt hangs, and rank 0 waits for it: two steps after a commit."""


def test_a_program_that_hangs_leaves_the_stacks_of_all_ranks_and_resumes(e2e: E2eCluster) -> None:
    e2e.pool("spot", 2)
    program = f"chain.py --steps 100000 --hangs-at {HANGS_AT}"
    e2e.submit({"name": "spot", "maxFailures": 1}, program=program, hangTimeout="15s")
    e2e.runs("spot")
    e2e.until("the attempt ends", e2e.path)
    assert e2e.path() == [("spot", "Stalled")]
    e2e.until("its output is kept", lambda: e2e.printed(1))
    printed = plain("\n".join(e2e.printed(1).values()))
    for rank in (0, 1):
        assert f"rank {rank} has made no step for" in printed, printed[-6000:]
    hanging = set(re.findall(r'\(([^()]*pid=\d+[^()]*)\)\s+File "/programs/chain.py", line \d+ in loop', printed))
    assert len(hanging) == 2, f"the stacks of one rank only: {hanging}\n{printed[-6000:]}"
    e2e.runs("spot", past=HANGS_AT)
    status = e2e.status()
    assert (status["attempt"], status["failures"]) == (2, 1)
    first = min(step.step for step in e2e.done() if step.attempt == 2)
    assert HANGS_AT - 5 < first <= HANGS_AT, "it resumes from its newest commit"
    e2e.suspend()
    e2e.is_the_uninterrupted_result(steps=e2e.steps())
