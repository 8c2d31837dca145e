"""The shadow policy of a job: a second policy that is asked at each decision, and never followed.

Rules
 1. It is asked in the situation of the job after the decision, while an attempt is live. Its choice holds until the
    next decision: it has no attempts of its own, so it is always asked about the attempt of the job.
 2. Time in which it chooses the tier of the attempt, or no tier, is agreement.
 3. For other time, `accounting` prices the nodes that the attempt holds at the price of the chosen tier.
 4. A change of its choice during an attempt is a move. It costs the nodes of a start and what the move costs beside
    (`move_costs`). When a new attempt begins, the job and the policy both start one, so that is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spotladder.core.accounting import charged
from spotladder.core.copying import replace
from spotladder.core.durations import format_duration
from spotladder.core.model import Decision, JobSpec, Observation, Seconds, Shadow, TierView
from spotladder.core.policies import Policy
from spotladder.core.situation import LIVE, Situation
from spotladder.core.tier_view import view_of

REVIEW_INTERVAL: Seconds = 60.0
"""Shortest time after which a decision is repeated only because the choice of the shadow policy may change."""


@dataclass(frozen=True, slots=True)
class ShadowChoice:
    """The tier that the shadow policy would use now, and why. `failed` is its error; "" if it answered."""

    tier: str
    why: str = ""
    failed: str = ""


def with_shadow(
    decision: Decision, spec: JobSpec, seen: Observation, name: str | None, load: Callable[[str], Policy]
) -> tuple[Decision, ShadowChoice | None]:
    """Ask the shadow policy of this name after a decision on this observation. `load` loads a policy by its name.

    Returns:
        The decision with the choice in its state, to be repeated when the choice may change; and the choice, None if
        the policy is not asked.
    """
    state, held = decision.state, decision.state.shadow
    if name is None:
        return (decision if held is None else _with(decision, None)), None
    if state.stage not in LIVE:
        return (decision if held is None else _with(decision, replace(held, tier="", capacity=None))), None
    if seen.revision < state.revision:
        return decision, None
    before = held if held is not None and held.policy == name else Shadow(name)
    view = view_of(Situation(spec, state, seen, state.clock), live=True)
    try:
        choice = load(name).choose(view)
    except Exception as error:  # noqa: BLE001 – the policy may be a user's, and must not stop the job
        failed = ShadowChoice("", failed=f"{type(error).__name__}: {error}")
        return _with(decision, replace(before, tier="", attempt=0, capacity=None)), failed
    tier = choice.tier if choice.tier is not None and choice.tier in view.open else state.tier
    after = replace(before, tier=tier, attempt=state.number, capacity=view.outlook(tier).capacity)
    if before.attempt == after.attempt and before.tier != tier:
        after = replace(after, moves=before.moves + 1, moves_usd=before.moves_usd + _move_usd(view, tier))
    if choice.review_at is not None and math.isfinite(choice.review_at):
        review = max(choice.review_at, state.clock + REVIEW_INTERVAL)
        decision = replace(decision, wake_at=review if decision.wake_at is None else min(review, decision.wake_at))
    return _with(decision, after), ShadowChoice(tier, choice.why)


def _with(decision: Decision, shadow: Shadow | None) -> Decision:
    return replace(decision, state=replace(decision.state, shadow=shadow))


def _move_usd(view: TierView, name: str) -> float:
    """What a move to this tier costs now."""
    outlook = view.outlook(name)
    price = next(tier.price for tier in view.tiers if tier.name == name)
    return charged(outlook.overhead * view.workers, price)[0] + outlook.move.total


def summary(shadow: Shadow) -> str:
    """What the policy would have done and saved, in one sentence; "" before any time."""
    if (agreement := shadow.agreement) is None:
        return ""
    if not shadow.tiers:
        return f"{shadow.policy} would have used the same tier all the time ({_rounded(shadow.agreed)})"
    places = " and ".join(f"{tier.name} for {_rounded(tier.seconds)}" for tier in shadow.tiers)
    share = min(99, round(100 * agreement))  # never 100 %: it differed
    notes = "; ".join([_difference(shadow), *_reservations(shadow)])
    return f"{shadow.policy} agreed {share} % of the time, and would have used {places}: {notes}"


def _difference(shadow: Shadow) -> str:
    if (saved := shadow.saved_usd) is None:
        return "no estimate of the cost"
    moves = "" if not shadow.moves else f", with {shadow.moves} move{'s' if shadow.moves > 1 else ''}"
    if abs(saved) < 0.00005:
        return f"estimated cost is the same{moves}"
    places = 2 if abs(saved) >= 0.1 else 4
    return f"estimated {abs(saved):.{places}f} USD {'less' if saved > 0 else 'more'}{moves}"


def _reservations(shadow: Shadow) -> Iterator[str]:
    """What the estimate assumes, and what it leaves out. Nothing if there is none."""
    if shadow.saved_usd is None:
        return
    for tier in shadow.tiers:
        if tier.assumed:
            part = f" for {_rounded(tier.assumed)}" if tier.assumed < tier.seconds - tier.uncounted else ""
            yield f"assumes that {tier.name} had capacity{part}"
        if tier.uncounted:
            yield f"no estimate for {_rounded(tier.uncounted)} on {tier.name}"


def _rounded(seconds: Seconds) -> str:
    """To the minute, or to the second below ten minutes."""
    unit = 60 if seconds >= 600 else 1
    return format_duration(round(seconds / unit) * unit)
