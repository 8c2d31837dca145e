"""A job that trains on demand and returns to spot with a standby attempt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spotladder.core.model import (
    AttemptSeen,
    JobSpec,
    Launch,
    Overlap,
    Progress,
    TierChoice,
    TierView,
)
from tests.core.builders import (
    START,
    SteppedJob,
    all_ready,
    attempt,
    pending,
    priced,
    spec,
)


class Wish:
    """A policy that wants one tier, which a test changes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.view: TierView | None = None

    def choose(self, view: TierView) -> TierChoice:
        self.view = view
        return TierChoice(self.name, why="the test wants it")


def tiers(**more: Any) -> JobSpec:
    """A cheap spot tier and an on-demand tier, with standby attempts."""
    chosen = (priced("spot", 1.0, 3.0, max_failures=2), priced("on-demand", 3.0, 3.0, max_failures=-1))
    return replace(spec(*chosen, overlap=Overlap()), **more)


def training(made: JobSpec | None = None, **progress: Any) -> SteppedJob:
    """A job that trains on demand, whose policy wants spot from now on."""
    job = SteppedJob(made or tiers(), Wish("on-demand")).running()
    job.progress = Progress(
        **{"step": 5, "total": 100, "committed_at": START, "attempt": 1, "stands_by": True, **progress}
    )
    job.policy.name = "spot"
    return job


def standing_by(made: JobSpec | None = None) -> SteppedJob:
    """The same with a standby attempt that has been launched."""
    job = training(made)
    job.see(all_ready(1), after=1)
    job.see(all_ready(1), after=1)
    assert job.last.actions == (Launch(2, "spot", standby=True),)
    job.see(all_ready(1), attempt(2, pending("s1"), pending("s2"), held=False), after=1)
    assert job.state.standby.attempt is not None
    return job


def held(number: int = 2, **more: Any) -> AttemptSeen:
    return all_ready(number, held=True, **more)
