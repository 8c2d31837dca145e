"""The condition Shadow: the choice of the shadow policy of a job. `core.shadowing` asks the policy."""

from __future__ import annotations

from spotladder.core.model import JobState
from spotladder.core.shadowing import ShadowChoice
from spotladder.operator.condition_types import ConditionType, ConditionUpdate, ConditionUpdates
from spotladder.operator.loaded import Loaded

SAME_TIER = "SameTier"
OTHER_TIER = "OtherTier"
FAILED = "PolicyFailed"
NOT_SET = "NotSet"


def of_shadow(loaded: Loaded, state: JobState, choice: ShadowChoice | None) -> ConditionUpdates:
    """The update of the condition Shadow for this state; none if the policy was not asked: between attempts and after
    the end of the job.

    The message explains the choice as of when its tier last changed, so that a choice that stays causes no status
    write.
    """
    name = loaded.job.spec.policy.shadow
    before = next((held for held in loaded.status.conditions if held.type == ConditionType.SHADOW), None)
    if name is None:
        return {} if before is None else {ConditionType.SHADOW: ConditionUpdate("False", NOT_SET)}
    if choice is None:
        return {}
    if choice.failed:
        return {ConditionType.SHADOW: ConditionUpdate("False", FAILED, f"{name}: {choice.failed}")}
    headline, same = f"{name} would use {choice.tier}", choice.tier == state.tier
    if before is not None and before.message.partition(":")[0] == headline:
        message = before.message
    else:
        message = f"{headline}: {choice.why}" if choice.why else headline
    update = ConditionUpdate("True", SAME_TIER, message) if same else ConditionUpdate("False", OTHER_TIER, message)
    return {ConditionType.SHADOW: update}
