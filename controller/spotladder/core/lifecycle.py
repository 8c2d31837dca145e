"""`decide`: computes the next state and actions from the spec, the stored state and an observation.

Rules
 1. One attempt is live at a time. All other observed objects of the job are deleted.
 2. A decision either changes the state or executes the persisted state, never both: an attempt is persisted before
    it is launched, so after a crash the same launch is repeated.
 3. Under `handover: Fenced` the next attempt starts while the last is removed, because the commit log fences the last:
    on another tier at once, on the same tier after `HANDOVER_GRACE_PERIOD`. Under `WhenGone` it waits.
 4. Each lost pod is one failure, once. Failure number maxFailures + 1 exhausts the tier. A pod that was counted while
    its node was cut off, and whose program ends only when the node returns, is not counted again.
 5. provisionTimeout runs while workers lack capacity, and exhausts the tier. It is suspended during every other
    impediment, whose own timer (`impediment.IMPEDIMENTS`) ends the attempt and keeps the tier.
 6. An attempt without quota waits in its admission queue: only queueTimeout runs. An attempt whose quota is withdrawn
    ends, because the queue would restart its program under the same attempt number.
 7. The program's own errors never change the tier; a failure that coincides with an eviction is an eviction.
 8. A terminal stage is never left.
 9. The spec with which an attempt was launched applies until it ends. A changed pod template starts a new attempt.
10. With `overlap`, the next attempt of a planned move, or after an eviction notice, boots beside the live one, which
    rule 1 then excepts, and takes over when the live one has ended. Its program is held until then. With
    `overlap.hedge_after`, so does the next tier's attempt while the live one waits for capacity: the first that is
    ready runs.
11. An elastic attempt is ready with `min_workers`. After a loss, or a notice, that leaves enough workers, its program
    restarts with fewer inside the attempt.

A decision has three steps. `observing.py` updates the state from the observation. The rules of the stage
(`rules/table.py`) answer the events that are seen. `acting.py` derives the actions of the state, unless it has changed.

`transitions.py` has the transition table, `moving.py` the effects of a change of stage, and `situation.py` the facts
and deadlines.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.accounting.held_nodes import account, rewound
from spotladder.core.acting import ACTION_RETRY_INTERVAL, actions, steady_reason, wake_at
from spotladder.core.changes.moving import moved
from spotladder.core.changes.suspending import without_impeded_time
from spotladder.core.diagnosis.impediment import impeded
from spotladder.core.model import Decision, Instant, JobSpec, JobState, Move, Observation, Stage
from spotladder.core.observing import observed
from spotladder.core.policies import Policy
from spotladder.core.reasons import Reason
from spotladder.core.rules.table import RULES_OF_STAGES
from spotladder.core.situation import Situation
from spotladder.errors import InvalidSpec


def decide(spec: JobSpec, state: JobState, seen: Observation, now: Instant, policy: Policy) -> Decision:
    """Make one decision.

    Args:
        spec: the job's current spec; it may differ from that of the last decision.
        state: the state of the last decision, as persisted; a new job starts with `JobState()`.
        seen: a snapshot of the job's objects. A snapshot older than the last one is ignored.
        now: the time of the caller's clock. It may step back without effect on the decisions.
        policy: chooses tiers, within the limits that `decide` enforces.

    Returns:
        The state to persist first, the actions to apply, and the latest time of the next call.

    Raises:
        InvalidSpec: the spec has no tiers.
        IllegalTransition: a defect; nothing was changed.
    """
    if not spec.tiers:
        raise InvalidSpec("a job needs at least one tier", path="spec.tiers")
    if seen.revision < state.revision:
        return Decision(state, reason=Reason.STALE_OBSERVATION, wake_at=now + ACTION_RETRY_INTERVAL)
    paid = replace(account(rewound(state, now), spec, now), revision=seen.revision)
    situation = observed(Situation(spec, paid, seen, now, policy), state.clock or None)
    situation, moves = _followed(without_impeded_time(_explained(situation), state))
    after, changes = situation.state, situation.changes
    if moves or changes.replanned:
        return Decision(after, (), after.reason, now, moves, changes.losses, changes.standby)
    todo = actions(situation)
    wake = wake_at(situation, acted=bool(todo), review_at=changes.choice.review_at)
    return Decision(after, todo, steady_reason(situation), wake, losses=changes.losses)


def _followed(situation: Situation) -> tuple[Situation, tuple[Move, ...]]:
    """The situation after all moves that are due, and these moves."""
    moves: list[Move] = []
    while True:
        situation, move = _ruled(situation)
        if move is None:
            return situation, tuple(moves)
        situation = _explained(situation)
        moves.append(move)
        if move.target is Stage.STARTING:  # One plan per decision: a policy that contradicts itself makes many
            return situation, tuple(moves)  # decisions, not an endless one.


def _ruled(situation: Situation) -> tuple[Situation, Move | None]:
    """The situation after one pass over the rules of its stage, and the move to another stage; None without one. This
    is the only place where the stage changes."""
    for rule in RULES_OF_STAGES[situation.state.stage]:
        effect = rule(situation)
        if effect is None:
            continue
        situation = effect.situation
        if effect.reason is not None:
            state, move = moved(situation, effect.reason, effect.message)
            return replace(situation, state=state), move
        if effect.waits:
            break
    return situation, None


def _explained(situation: Situation) -> Situation:
    """The situation whose state has the reason why the job does not train, and when that began."""
    state, before, now = situation.state, situation.state.impeded, impeded(situation)
    if now == before:
        return situation
    if before is not None and before.reason is Reason.STORE_UNAVAILABLE:
        # The work of the outage is committed now, so stallTimeout starts again.
        state = replace(state, progress_at=situation.now)
    return replace(situation, state=replace(state, impeded=now))
