"""How many seconds pass between a loss, as the cluster shows it, and the launch of the next attempt, or the request for
a replacement, while everything else answers at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from spotladder.core.model import (
    AttemptSeen,
    Exit,
    Handover,
    JobSpec,
    Launch,
    PodPhase,
    PodRole,
    PodSeen,
    Progress,
    Replace,
)
from spotladder.core.situation import HANDOVER_GRACE_PERIOD
from tests.core.builders import START, SteppedJob, all_ready, attempt, head, lost, noticed, silent, spec, tier, worker

WINDOW = 60.0
CONTACT = 100.0
GRACE = 20.0

Shown = Callable[[float], AttemptSeen | None]
"""The attempt that lost something, by the seconds since the loss; None once it is gone."""


def job_spec(**more: object) -> JobSpec:
    tiers = (tier("spot-a", 0), tier("on-demand", -1))
    limits = {"attribution_window": WINDOW, "contact_timeout": CONTACT, "grace": GRACE}
    return spec(*tiers, **{**limits, **more})


def gone_after(seconds: float, *pods: PodSeen, **more: object) -> Shown:
    """The attempt with these pods, which is gone this long after the loss."""
    return lambda since: None if since >= seconds else attempt(1, head(), *pods, **more)


def seconds_until(made: SteppedJob, observed: Shown, acts: type[Launch] | type[Replace]) -> float:
    """Seconds from the loss until the first action of this kind."""
    since = 0.0
    while since < 300:
        seen = observed(since)
        decision = made.see(*([] if seen is None else [seen]), after=1.0 if since else 0.0)
        decision = made.see_again(after=0.0) if not decision.actions else decision
        if any(isinstance(action, acts) for action in decision.actions):
            return since
        since += 1.0
    raise AssertionError(f"nothing happens: {made.state}")


@pytest.mark.parametrize(
    ("observed", "more", "within"),
    [
        pytest.param(gone_after(1, lost("w1-0"), worker("w1-1")), {}, 1, id="a pod is lost"),
        pytest.param(
            gone_after(99, lost("w1-0"), worker("w1-1")), {}, HANDOVER_GRACE_PERIOD, id="and its attempt lingers"
        ),
        pytest.param(
            gone_after(30, lost("w1-0"), worker("w1-1")), {"handover": Handover.WHEN_GONE}, 30, id="without a fence"
        ),
        pytest.param(
            lambda since: attempt(1, head(PodPhase.LOST), worker("w1-0")) if since < 1 else None, {}, 1, id="the head"
        ),
        pytest.param(lambda since: None, {}, 0, id="the whole attempt vanishes"),
        pytest.param(
            gone_after(1, lost("w1-0"), worker("w1-1"), exit=Exit.FAILED), {}, 1, id="the program fails after a loss"
        ),
        pytest.param(
            lambda since: (
                attempt(1, head(), worker("w1-0") if since < 45 else silent("w1-0"), worker("w1-1"), exit=Exit.FAILED)
                if since < 46
                else None
            ),
            {},
            46,
            id="the program fails, and its node is marked later",
        ),
        pytest.param(
            lambda since: (
                attempt(1, head(), replace(worker("w1-0"), suspect=since >= 25), worker("w1-1"), exit=Exit.FAILED)
                if since < 26
                else None
            ),
            {},
            26,
            id="the program fails, and its node is suspected later",
        ),
        pytest.param(
            gone_after(GRACE + 5, noticed("w1-0", START + 999), worker("w1-1")), {}, GRACE + 5, id="a notice, no exit"
        ),
        pytest.param(
            gone_after(1, silent("w1-0"), worker("w1-1"), nodes=3, silent_nodes=1), {}, 1, id="one node is silent"
        ),
        pytest.param(
            lambda since: (
                attempt(1, silent("w1-0"), silent("w1-1"), nodes=2, silent_nodes=2) if since < CONTACT + 1 else None
            ),
            {},
            CONTACT + 1,
            id="all nodes are silent",
        ),
    ],
)
def test_the_next_attempt_is_launched_within(observed: Shown, more: dict[str, object], within: float) -> None:
    made = SteppedJob(job_spec(**more)).running()
    assert seconds_until(made, observed, Launch) <= within + 1


@pytest.mark.parametrize(
    ("pod", "within"),
    [
        pytest.param(noticed("w1-0", START + 999), 0, id="a notice"),
        pytest.param(PodSeen("w1-0", PodRole.WORKER, suspect=True), 0, id="a silent node that is not marked yet"),
    ],
)
def test_a_replacement_is_requested_within(pod: PodSeen, within: float) -> None:
    made = SteppedJob(spec(tier("spot-a", 3, surge=True))).running()
    made.progress = Progress(5, 100, START, 1, hands_over=True)
    assert seconds_until(made, lambda _: attempt(1, head(), pod, worker("w1-1"), surplus=0), Replace) <= within


def test_a_healthy_attempt_causes_no_action() -> None:
    made = SteppedJob(job_spec()).running()
    with pytest.raises(AssertionError, match="nothing happens"):
        seconds_until(made, lambda _: all_ready(1), Launch)
