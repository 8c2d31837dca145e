"""A hedge of `spotladder run`: the runner with the local backend, whose Ray nodes and clock are stepped by the test."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from spotladder.core.accounting import HOUR
from spotladder.core.model import JobState, Overlap, Progress, Stage
from spotladder.core.policies.ordered import Ordered
from spotladder.core.reasons import Reason
from spotladder.display.records import Committed, Moved, Noted
from spotladder.display.view_state import ViewSnapshot
from spotladder.local import driver
from spotladder.local.pools import PoolClock, PoolPlan, Window
from spotladder.local.runner import Runner
from tests.core.builders import priced, spec
from tests.local.rig import BEGAN, BackendRig

AFTER = 20.0
BOOT = 4.0
"""Time from the request of a node until it is up."""

STARTED = "attempt 2 on spot-b starts beside attempt 1: spot-a has not become ready for 20s"


@dataclass
class HedgedRun:
    """A run whose first tier has no capacity at first."""

    rig: BackendRig
    wanted_at: dict[str, float] = field(default_factory=dict)
    saved: list[JobState] = field(default_factory=list)
    ended: bool = False

    def run(self) -> int:
        tiers = (priced("spot-a", 1.0, 3.0, max_failures=1), priced("spot-b", 3.0, 3.0, max_failures=1))
        job = spec(*tiers, overlap=Overlap(budget=5.0, hedge_after=AFTER))
        job = replace(job, submitted_at=BEGAN)
        runner = Runner(
            job,
            Ordered(),
            self.rig.backend,
            commits=self,
            keep=self,
            emit=self.rig.records.append,
            view=self,  # type: ignore[arg-type]
            clock=lambda: self.rig.now,
            wait=self.wait,
        )
        return runner.run(JobState())

    def wait(self, _seconds: float) -> None:
        """One second passes: nodes come up, held programs report it, and the program that may train ends."""
        self.rig.now += 1.0
        assert self.rig.now < BEGAN + 600.0, "the runner does not end"
        for name, node in self.rig.nodes.items():
            node.up = self.rig.now - self.wanted_at.setdefault(name, self.rig.now) >= BOOT
        for number in (1, 2):
            if self._all_up(number):
                self._step(number)

    def _all_up(self, number: int) -> bool:
        workers = [self.rig.nodes.get(f"a{number}-w{index}-1") for index in (1, 2)]
        return all(node is not None and node.up and node.alive for node in workers)

    def _step(self, number: int) -> None:
        folder = self.rig.attempt(number)
        if not (folder / "started.json").exists():
            driver.note(folder / "started.json", pid=number, at=self.rig.now)
        elif number == 2 and not (folder / "notice.json").exists():
            driver.note(folder / "heartbeat.json", at=self.rig.now, phase="standby")
        elif self.rig.log.progress.attempt < number:
            self.rig.log.progress = Progress(0, 10, None, number, stands_by=True)
        elif not self.ended:
            self.rig.log.progress = replace(self.rig.log.progress, step=10, committed_at=self.rig.now)
            driver.note(folder / "exited.json", code=0, at=self.rig.now)
            self.ended = True

    # --- what the runner needs beside its backend ---

    def save(self, state: JobState) -> None:
        self.saved.append(state)

    def take_new(self) -> list[Committed]:
        return []

    def take_error(self) -> None:
        return None

    def update(self, snapshot: ViewSnapshot) -> None: ...

    def reasons(self) -> list[Reason]:
        return [record.move.reason for record in self.rig.records if isinstance(record, Moved)]

    def notes(self) -> list[str]:
        return [record.text for record in self.rig.records if isinstance(record, Noted)]


def hedged_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dry: float) -> HedgedRun:
    """A run whose first pool has no nodes for `dry` seconds."""
    plans = {"spot-a": PoolPlan("spot-a", nodes=2, dry=(Window(0.0, dry),)), "spot-b": PoolPlan("spot-b", nodes=2)}
    rig = BackendRig(tmp_path, monkeypatch, pools={name: PoolClock(plan, BEGAN, BEGAN) for name, plan in plans.items()})
    return HedgedRun(rig)


def test_the_next_pool_trains_while_the_first_has_no_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = hedged_run(tmp_path, monkeypatch, dry=300.0)
    assert job.run() == 0
    assert job.notes().count(STARTED) == 1
    assert job.reasons() == [
        Reason.STARTED,
        Reason.HEDGED,
        Reason.RELIEVED,
        Reason.FELL_BACK,
        Reason.ALL_READY,
        Reason.COMPLETED,
    ]
    state = job.saved[-1]
    assert (state.stage, state.tier, state.failures, state.last_number) == (Stage.SUCCEEDED, "spot-b", 0, 2)
    assert state.record("spot-a").exhausted_by is None
    environments = dict(job.rig.submitted)
    assert environments["digits-0002"]["SPOTLADDER_STANDBY"] == "true"
    assert "SPOTLADDER_STANDBY" not in environments["digits-0001"]
    assert set(job.rig.nodes) == {"h1", "h2", "a2-w1-1", "a2-w2-1"}
    assert not job.rig.nodes["h1"].alive, "the first attempt ends"
    assert 0 < state.overlap_usd <= 2 * 60 * 3.0 / HOUR
    assert set(job.rig.log.ended) == {(True, "Completed")}


def test_the_hedge_ends_if_the_first_pool_has_nodes_before_it_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = hedged_run(tmp_path, monkeypatch, dry=AFTER + 2)
    assert job.run() == 0
    assert job.notes().count(STARTED) == 1
    assert job.reasons() == [Reason.STARTED, Reason.ALL_READY, Reason.COMPLETED]
    state = job.saved[-1]
    assert (state.stage, state.tier, state.failures, state.standby) == (Stage.SUCCEEDED, "spot-a", 0, None)
    assert "standby attempt 2 on spot-b is given up: attempt 1 on spot-a is ready first" in job.notes()
    assert not any(node.alive for name, node in job.rig.nodes.items() if name.startswith("a2-"))
    assert job.rig.pools["spot-b"].held == 0
