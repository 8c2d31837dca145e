"""The shadow policy of a job, which the controller evaluates at every decision but does not follow. The condition
Shadow has its choice."""

from __future__ import annotations

from collections.abc import Callable

from spotladder.core.model import JobState
from spotladder.core.policies import Policy
from spotladder.core.situation import LIVE, Situation
from spotladder.core.tier_view import view_of
from spotladder.operator.condition_types import ConditionType, ConditionUpdate, ConditionUpdates
from spotladder.operator.loaded import Loaded

SAME_TIER = "SameTier"
OTHER_TIER = "OtherTier"
FAILED = "PolicyFailed"
NOT_SET = "NotSet"


def of_shadow(loaded: Loaded, state: JobState, policy: Callable[[str], Policy]) -> ConditionUpdates:
    """The update of the condition Shadow for this state; none between attempts and after the end of the job.

    The message explains the choice as of when its tier last changed, so that a choice that stays causes no status
    write. `policy` loads a policy by its name.
    """
    name = loaded.job.spec.policy.shadow
    before = next((held for held in loaded.status.conditions if held.type == ConditionType.SHADOW), None)
    if name is None:
        return {} if before is None else {ConditionType.SHADOW: ConditionUpdate("False", NOT_SET)}
    if state.stage not in LIVE:
        return {}
    view = view_of(Situation(loaded.spec, state, loaded.seen, state.clock), live=True)
    try:
        choice = policy(name).choose(view)
    except Exception as error:  # noqa: BLE001 – the policy may be a user's, and must not stop the job
        return {ConditionType.SHADOW: ConditionUpdate("False", FAILED, f"{name}: {type(error).__name__}: {error}")}
    tier = choice.tier if choice.tier in view.open else state.tier
    headline, same = f"{name} would use {tier}", tier == state.tier
    if before is not None and before.message.partition(":")[0] == headline:
        message = before.message
    else:
        message = f"{headline}: {choice.why}" if choice.why else headline
    update = ConditionUpdate("True", SAME_TIER, message) if same else ConditionUpdate("False", OTHER_TIER, message)
    return {ConditionType.SHADOW: update}
