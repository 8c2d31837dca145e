"""An operator that does not act spends no tier, however long it takes."""

from __future__ import annotations

from spotladder.core.model import Launch, Stage
from spotladder.core.reasons import Reason
from tests.core.builders import Job, attempt, spec, tier, whole

SILENT = "KubeRay does not act: RayJob a has no status"


def test_nothing_is_exhausted_while_kuberay_does_not_take_the_attempt_up() -> None:
    job = Job(spec(tier("spot-a", 0, 20.0), tier("on-demand", -1, 20.0)))
    job.see()
    job.see(after=10)
    for _ in range(100):
        decision = job.see(after=10, operator_silent=SILENT)
        assert decision.actions == (Launch(1, "spot-a"),)
    assert job.state.impeded is not None
    assert (job.state.impeded.reason, job.state.record("spot-a").exhausted_by) == (Reason.OPERATOR_SILENT, None)
    job.see(whole(1), after=5)
    assert job.state.stage is Stage.RUNNING


def test_the_wait_for_capacity_goes_on_where_it_stood() -> None:
    job = Job(spec(tier("spot-a", 0, 60.0)))
    job.see()
    for _ in range(10):
        job.see(attempt(1, operator_silent=SILENT), after=50)
    job.see(attempt(1), after=50)
    assert job.state.stage is Stage.STARTING
    job.see(attempt(1), after=15)
    assert job.state.record("spot-a").exhausted_by is Reason.INSUFFICIENT_CAPACITY


def test_a_short_provision_timeout_ends_only_after_the_operator_has_acted() -> None:
    """Until an operator has had time to act, nothing says whether there is capacity."""
    job = Job(spec(tier("spot-a", 0, 3.0), tier("on-demand", -1, 3.0)))
    job.see()
    job.see(launched=True, after=1)
    for _ in range(5):
        job.see(launched=True, after=3)
    assert job.state.record("spot-a").exhausted_by is None
    job.see(attempt(1), after=1)
    assert job.state.record("spot-a").exhausted_by is Reason.INSUFFICIENT_CAPACITY
