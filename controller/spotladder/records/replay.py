"""Makes the recorded decisions of a job again, with any policy.

Each decision is made in the recorded situation: another policy is asked at each of them, and never followed. So its
costs are an estimate, which knows no eviction on the other tier and no later start or end of the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from spotladder.core.accounting.held_nodes import charged
from spotladder.core.lifecycle import decide
from spotladder.core.model import Instant, JobSpec, Move, Seconds, TierChoice, TierView
from spotladder.core.policies import Policy
from spotladder.core.situation import LIVE
from spotladder.errors import EnvironmentFailure
from spotladder.records.model import Began, Decided, Moved, Record, Specified


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision with the spec and the policy that applied, the moves that it made, and the time of the next one."""

    decided: Decided
    spec: JobSpec
    policy: str
    moves: tuple[Move, ...]
    until: Instant


@dataclass(frozen=True, slots=True)
class Difference:
    """A decision that another policy makes differently. `tier` is the one that it would use."""

    at: Instant
    moves: tuple[Move, ...]
    instead: tuple[Move, ...]
    tier: str


@dataclass(slots=True)
class Answers:
    """What a policy would have done. `agreed` are the seconds in which it would have used the tier of the attempt,
    `others` those in which another one. `actual_usd` is the cost of the attempt's nodes in the latter, and
    `estimated_usd` that of the same nodes on its tier; `uncounted` are the seconds without an estimate: a price is
    unknown, or the tier was known to have no capacity."""

    policy: str
    decisions: int = 0
    differences: list[Difference] = field(default_factory=list)
    agreed: Seconds = 0.0
    others: dict[str, Seconds] = field(default_factory=dict)
    uncounted: Seconds = 0.0
    actual_usd: float = 0.0
    estimated_usd: float = 0.0


def recorded_decisions(records: Sequence[Record]) -> list[RecordedDecision]:
    """The decisions, oldest first. Each is followed by its moves, and holds until the next one or an interrupt."""
    found: list[RecordedDecision] = []
    ends: list[Instant] = []
    spec, policy, last = None, "", 0.0
    for record in records:
        if isinstance(record, Began | Decided) and len(ends) < len(found):
            ends.append(last if isinstance(record, Began) else record.at)
        last = record.at
        if isinstance(record, Began | Specified):
            spec, policy = record.spec, record.policy
        elif isinstance(record, Decided) and spec is not None:
            found.append(RecordedDecision(record, spec, policy, (), record.at))
        elif isinstance(record, Moved) and found and found[-1].decided.after is not None:
            found[-1] = replace(found[-1], moves=(*found[-1].moves, record.move))
    return [replace(each, until=until) for each, until in zip(found, [*ends, last], strict=False)]


class _Asked:
    """A policy that keeps its last choice."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.choice: TierChoice | None = None

    def choose(self, view: TierView) -> TierChoice:
        self.choice = self._policy.choose(view)
        return self.choice


def answers(decisions: Sequence[RecordedDecision], name: str, policy: Policy) -> Answers:
    """What this policy would have done. Raises EnvironmentFailure if the policy fails."""
    found = Answers(name, len(decisions))
    for each in decisions:
        asked, seen, state = _Asked(policy), each.decided.seen, each.decided.state
        try:
            decision = decide(each.spec, state, seen, each.decided.at, asked)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise EnvironmentFailure(
                f"policy {name}: failed at the decision of {each.decided.at:.1f} s: {why}"
            ) from error
        after = each.decided.after or state
        used = after.tier if after.stage in LIVE else ""
        chosen = asked.choice.tier if asked.choice is not None else None
        tier = chosen or used
        if decision.moves != each.moves or (used and tier != used):
            found.differences.append(Difference(each.decided.at, each.moves, decision.moves, tier))
        if used:
            _compare(found, each, used, tier, nodes=after.nodes)
    return found


def _compare(found: Answers, each: RecordedDecision, used: str, tier: str, *, nodes: int) -> None:
    elapsed = max(0.0, each.until - each.decided.at)
    if tier == used:
        found.agreed += elapsed
        return
    found.others[tier] = found.others.get(tier, 0.0) + elapsed
    here, there = each.spec.tier(used), each.spec.tier(tier)
    known = here is not None and there is not None and here.price.known and there.price.known
    if here is None or there is None or not known or tier in each.decided.seen.unavailable:
        found.uncounted += elapsed
    else:
        found.actual_usd += charged(nodes * elapsed, here.price)[0]
        found.estimated_usd += charged(nodes * elapsed, there.price)[0]
