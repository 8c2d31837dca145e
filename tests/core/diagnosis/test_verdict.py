"""Every row of the table of verdicts: its evidence, its outcome, its message, and its effect on the job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from spotladder.core.diagnosis.verdict import SILENT_STALLS, VERDICTS, Outcome, judge
from spotladder.core.model import (
    AttemptSeen,
    Delete,
    Exit,
    Handover,
    Launch,
    Observation,
    PodSeen,
    Progress,
    QueueEviction,
    QueueSeen,
    Stage,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import HANDOVER_GRACE_PERIOD, Situation
from tests.core.builders import SteppedJob, all_ready, attempt, head, lost, noticed, spec, tier, worker

WINDOW, STALL = 20.0, 600.0
DONE = all_ready(1, exit=Exit.SUCCEEDED)
NOTICED = attempt(1, head(), noticed("w1-0"), worker("w1-1"))
FAILED = all_ready(1, exit=Exit.FAILED, message="exit code 1")


def ended(seen: AttemptSeen, how: Exit = Exit.SUCCEEDED) -> AttemptSeen:
    return replace(seen, exit=how)


def training(step: int = 0, total: int = 100, **more: Any) -> SteppedJob:
    tiers = (tier("spot-a", 2), tier("on-demand", -1))
    job = SteppedJob(spec(*tiers, attribution_window=WINDOW, stall_timeout=STALL, **more)).running()
    if step:
        job.commit(step, total).see(all_ready(1), after=1)
    return job


def without_library(**more: Any) -> SteppedJob:
    job = training(**more)
    job.progress = Progress()
    job.see(all_ready(1), after=1)
    return job


def after(seen: AttemptSeen, job: SteppedJob | None = None) -> SteppedJob:
    job = job or training(40)
    job.see(seen, after=1)
    return job


@dataclass(frozen=True)
class VerdictCase:
    """The job, what is observed of its attempt then, and after how long."""

    row: str
    says: str
    build: Callable[[], SteppedJob]
    seen: AttemptSeen
    seconds: float = 1.0


CASES = {
    "the last step is committed": VerdictCase("LastStep", "step 100 of 100", lambda: training(100), DONE),
    "the last step is committed during a notice": VerdictCase(
        "LastStep", "step 100 of 100", lambda: after(NOTICED, training(100)), ended(NOTICED)
    ),
    "a notice": VerdictCase("CutShort", "step 40 of 100", lambda: training(40), ended(NOTICED)),
    "a drain": VerdictCase("CutShort", "was being ended (EvictionNotice)", lambda: after(NOTICED), ended(NOTICED)),
    "a drain, after the pods": VerdictCase("CutShort", "EvictionNotice", lambda: after(NOTICED), DONE),
    "a lost pod": VerdictCase(
        "CutShort", "the node of w1-0", lambda: training(40), ended(attempt(1, head(), lost("w1-0"), worker("w1-1")))
    ),
    "a loss before": VerdictCase(
        "CutShort", "a pod was lost", lambda: after(attempt(1, head(), lost("w1-0", Cause.NODE_LOST), worker("w1-1"))),
        ended(attempt(1, head(), worker("w1-1"))),
    ),
    "a silent node": VerdictCase(
        "CutShort", "the node of w1-0", lambda: training(40),
        ended(attempt(1, head(), PodSeen("w1-0", suspect=True), worker("w1-1"))),
    ),
    "a quota that was withdrawn": VerdictCase(
        "CutShort", "its quota was withdrawn", lambda: training(40),
        all_ready(1, exit=Exit.SUCCEEDED, queue=QueueSeen("team", eviction=QueueEviction.PREEMPTED)),
    ),
    "a notice without the library": VerdictCase(
        "CutShort", "it begins from the start", without_library, ended(NOTICED)
    ),
    "before its last step": VerdictCase("Early", "step 40 of 100", lambda: training(40), DONE),
    "before the step of its heartbeats": VerdictCase(
        "Early", "step 0 of 300", lambda: after(all_ready(1, step=20, total=300), training()), DONE
    ),
    "before its last step, long ago": VerdictCase(
        "NothingAgainst", "nothing interrupted it", lambda: after(DONE), DONE, WINDOW
    ),
    "no declared end": VerdictCase("NothingAgainst", "exit code 0", training, DONE),
    "no library": VerdictCase("NothingAgainst", "exit code 0", without_library, DONE),
    "its own pods go": VerdictCase(
        "NothingAgainst", "exit code 0", without_library,
        ended(attempt(1, head(), lost("w1-0", Cause.DELETED), lost("w1-1", Cause.UNKNOWN))),
    ),
    "exit code 75": VerdictCase("Stopped", "exit code 75", training, ended(all_ready(1), Exit.INTERRUPTED)),
    "a failure in a notice": VerdictCase("FailedInLoss", "exit code 1", training, replace(NOTICED, exit=Exit.FAILED,
                                         message="exit code 1")),
    "a failure": VerdictCase("FailedJustNow", "exit code 1", training, FAILED),
    "a failure, long ago": VerdictCase("Failed", "exit code 1", lambda: after(FAILED, training()), FAILED, WINDOW),
    "no step": VerdictCase("Hung", "the program hangs: no step for 60 s", training,
                           all_ready(1, hung="no step for 60 s")),
    "no commit": VerdictCase("NoNewStep", "no commit for 600 s", training, all_ready(1), STALL),
    "the same step again": VerdictCase(
        "NoNewStep", "no commit of a new step for 600 s; step 40 is the newest",
        lambda: after(all_ready(1), training(40).commit(40)), all_ready(1), STALL,
    ),
    "no output any more": VerdictCase(
        "NoSignOfLife", "its output has not grown for 2h", without_library,
        all_ready(1, quiet_for=SILENT_STALLS * STALL), SILENT_STALLS * STALL,
    ),
    "output that grew": VerdictCase("NoStartEntry", "does not use spotladder.train", without_library,
                                    all_ready(1, quiet_for=STALL), 10 * STALL),
    "no output, but Ray reports it as running": VerdictCase(
        "NoStartEntry", "more than 2h: if it hangs, set spec.stallTimeout", without_library,
        all_ready(1, quiet_for=100 * STALL, reported_running=True), 100 * STALL,
    ),
    "no output, whatever Ray reports, if the user has set stallTimeout": VerdictCase(
        "NoSignOfLife", "its output has not grown for 2h", lambda: without_library(stall_timeout_given=True),
        all_ready(1, quiet_for=SILENT_STALLS * STALL, reported_running=True), SILENT_STALLS * STALL,
    ),
    "no start entry": VerdictCase("NoStartEntry", "does not use spotladder.train", without_library,
                                  all_ready(1), STALL),
}  # fmt: skip


def verdict_of(case: VerdictCase) -> tuple[str, str]:
    job = case.build()
    job.now += case.seconds
    found = judge(Situation(job.spec, job.state, Observation(job.revision, (case.seen,), job.progress), job.now))
    assert found is not None
    return found.rule.name, found.message


@pytest.mark.parametrize("name", CASES)
def test_the_evidence_selects_the_row(name: str) -> None:
    case = CASES[name]
    row, message = verdict_of(case)
    assert row == case.row, message
    assert case.says in message


def test_every_row_has_a_case() -> None:
    assert {case.row for case in CASES.values()} == {rule.name for rule in VERDICTS}
    assert {rule.outcome for rule in VERDICTS} == set(Outcome)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.row == "CutShort"])
def test_a_program_that_was_cut_short_has_a_next_attempt(name: str) -> None:
    job = CASES[name].build()
    job.see(CASES[name].seen, after=1)
    assert job.state.stage is Stage.ENDING
    job.see(after=1)
    counted = 0 if name == "a quota that was withdrawn" else 1  # An admission queue does not speak of the tier.
    assert (job.number, job.state.tier, job.state.failures) == (2, "spot-a", counted)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.row in ("LastStep", "NothingAgainst")])
def test_a_program_that_has_finished_ends_the_job(name: str) -> None:
    job = CASES[name].build()
    job.see(CASES[name].seen, after=CASES[name].seconds)
    assert (job.state.stage, job.state.reason) == (Stage.SUCCEEDED, Reason.COMPLETED)


def test_a_loss_within_the_window_explains_exit_code_0() -> None:
    job = training(40)
    job.see(DONE, after=1)
    assert (job.state.stage, job.impeded.reason) == (Stage.RUNNING, Reason.PROGRAM_ENDED)
    assert job.last.wake_at == job.now + WINDOW
    job.see(ended(attempt(1, head(), lost("w1-0"), worker("w1-1"))), after=10)
    assert job.reasons[-1] is Reason.INTERRUPTED
    assert "exit code 0" in job.state.message


def test_exit_code_0_after_the_attempt_was_ended_does_not_finish_the_job() -> None:
    job = training(40)
    job.see(attempt(1, head(), lost("w1-0"), lost("w1-1")), after=1)
    job.edit(suspend=True).see(attempt(1, head(), lost("w1-0"), lost("w1-1")), after=1)
    assert job.state.stage is Stage.ENDING
    job.see(DONE, after=1)
    assert job.state.stage is not Stage.SUCCEEDED
    job.commit(100).see(DONE, after=1)
    assert job.state.stage is Stage.SUCCEEDED


def test_an_attempt_that_cannot_be_fenced_is_gone_before_the_next_one() -> None:
    job = without_library().edit(tiers=(tier("spot-a", 0), tier("on-demand", -1)))
    hurt = attempt(1, head(), lost("w1-0"), worker("w1-1"))
    assert job.see(hurt, after=1).actions == (Delete(1, Reason.MAX_FAILURES_EXCEEDED),)
    job.see(hurt, after=3600)
    assert job.state.stage is Stage.ENDING
    assert job.see(after=1).actions == (Launch(2, "on-demand"),)


def test_a_program_without_the_library_is_not_ended_for_lack_of_commits() -> None:
    job = without_library()
    for _ in range(5):
        assert job.last.wake_at is None or job.last.wake_at > job.now
        job.see(all_ready(1), after=10 * STALL)
    assert (job.state.stage, job.state.failures) == (Stage.RUNNING, 0)


def test_a_program_without_the_library_that_shows_no_life_counts_as_a_failure() -> None:
    job = without_library()
    job.see(all_ready(1, quiet_for=SILENT_STALLS * STALL - 1), after=SILENT_STALLS * STALL)
    assert (job.state.stage, job.state.failures) == (Stage.RUNNING, 0)
    job.see(all_ready(1, quiet_for=SILENT_STALLS * STALL), after=1)
    assert (job.reasons[-1], job.state.failures) == (Reason.STALLED, 1)


def test_output_from_before_the_pods_were_ready_again_is_no_sign_of_death() -> None:
    job = without_library()
    job.see(attempt(1, head(), worker("w1-0"), worker("w1-1", ready=False)), after=1)
    job.see(all_ready(1, quiet_for=10 * SILENT_STALLS * STALL), after=1)
    assert job.state.stage is Stage.RUNNING


@pytest.mark.parametrize(("grown", "stage"), [(0, Stage.ENDING), (1, Stage.RUNNING)], ids=["repeated", "other files"])
def test_commits_of_the_same_step_are_progress_only_with_other_files(grown: int, stage: Stage) -> None:
    job = training(40)
    for commit in range(1, 150):
        size = replace(job.progress.size, bytes=1000 + grown * commit)
        job.commit(40, size=size, commit=commit).see(all_ready(1), after=5)
        if job.state.stage is not Stage.RUNNING:
            break
    assert job.state.stage is stage


def test_a_commit_that_is_read_after_the_attempt_has_ended_is_in_its_record() -> None:
    job = training(40)
    job.see(ended(NOTICED, Exit.INTERRUPTED), after=1)
    job.edit(suspend=True).see(after=1)
    assert job.state.history[-1].end_step == 40
    job.progress = replace(job.progress, step=43)
    job.see(after=1)
    assert job.state.history[-1].end_step == 43


def test_commits_of_an_attempt_that_was_cut_off_are_its_own() -> None:
    job = training(40).edit(handover=Handover.FENCED)
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=job.spec.recovery_timeout)
    assert job.state.stage is Stage.ENDING
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=HANDOVER_GRACE_PERIOD)
    assert (job.number, job.state.history[-1].end_step) == (2, 40)
    job.progress = replace(job.progress, step=60, committed_at=job.now)  # Attempt 1 still writes.
    job.see(attempt(2, head()), after=1)
    assert job.state.history[-1].end_step == 60
    job.edit(suspend=True).see(attempt(2, head()), after=1)
    job.see(after=1)
    assert [(one.number, one.start_step, one.end_step) for one in job.state.history] == [(1, 0, 60), (2, 60, 60)]
    job.progress = replace(job.progress, step=70)
    job.see(after=1)
    assert [(one.number, one.end_step) for one in job.state.history] == [(1, 70), (2, 60)]
