"""An operator that does not act exhausts no tier, however long it takes."""

from __future__ import annotations

from spotladder.core.model import Launch, Stage
from spotladder.core.reasons import Reason
from tests.core.builders import SteppedJob, all_ready, attempt, spec, tier

SILENT = "KubeRay does not act: RayJob a has no status"


def test_no_tier_is_exhausted_while_kuberay_does_not_act_on_the_attempt() -> None:
    job = SteppedJob(spec(tier("spot-a", 0, 20.0), tier("on-demand", -1, 20.0)))
    job.see()
    job.see(after=10)
    for _ in range(100):
        decision = job.see(after=10, operator_silent=SILENT)
        assert decision.actions == (Launch(1, "spot-a"),)
    assert (job.impeded.reason, job.state.record("spot-a").exhausted_by) == (Reason.OPERATOR_SILENT, None)
    job.see(all_ready(1), after=5)
    assert job.state.stage is Stage.RUNNING


def test_provision_timeout_expires_only_after_the_operator_has_acted() -> None:
    """Before the operator has acted, it is unknown whether there is capacity."""
    job = SteppedJob(spec(tier("spot-a", 0, 3.0), tier("on-demand", -1, 3.0)))
    job.see()
    job.see(launched=True, after=1)
    for _ in range(5):
        job.see(launched=True, after=3)
    assert job.state.record("spot-a").exhausted_by is None
    job.see(attempt(1), after=1)
    assert job.state.record("spot-a").exhausted_by is Reason.INSUFFICIENT_CAPACITY
