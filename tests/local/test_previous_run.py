"""A previous run of the same job: its data is never deleted without the user's option."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.core.model import Attempt, JobSpec, JobState, KnownPods, Price, Progress, Stage, Tier, TierRecord
from spotladder.core.reasons import Reason
from spotladder.errors import EnvironmentFailure, InvalidSpec, LogCorrupt
from spotladder.local.previous_run import RunStart, StartMode, close_interrupted_attempt, start_from, unrecorded_commits
from spotladder.local.state import JobFolder, RunIdentity
from spotladder.records.model import Billed, Committed, Noted
from tests.checkpoints.builders import commit_folder

NOW = RunIdentity(began=50.0, python="3.11", ray="2.58.1", uri="file:///x", mark="new")
THEN = RunIdentity(began=10.0, python="3.11", ray="2.58.1", uri="file:///x", mark="old")


class PreviousRun:
    def __init__(self, root: Path) -> None:
        self.folder = JobFolder(root / "state", "team-a", "digits")
        self.folder.path.mkdir(parents=True)
        self.bucket = root / "bucket"
        self.log = CommitLog(open_store(str(self.bucket)), job="digits", namespace="team-a")

    def commit(self, step: int, *, at: float | None = None, uid: str = "") -> None:
        files = self.bucket.parent / "files"
        files.mkdir(exist_ok=True)
        (files / "weights").write_text("w")
        log = CommitLog(
            open_store(str(self.bucket)), "digits", namespace="team-a", uid=uid, clock=lambda: at or time.time()
        )
        start = log.read().start
        writer = log.start(1, "spot-a", tried={start.nonce} if start and uid else None)
        commit_folder(writer, step, files, total=100)

    def left(self, state: JobState) -> None:
        self.folder.save(state)
        self.folder.save_run(THEN)


@pytest.fixture
def place(tmp_path: Path) -> PreviousRun:
    return PreviousRun(tmp_path)


SUSPENDED = JobState(stage=Stage.SUSPENDED, last_number=2, tier="spot-b")
SPENT = TierRecord(
    "spot-a",
    3,
    4,
    3600.0,
    0.42,
    1.41,
    exhausted_by=Reason.MAX_FAILURES_EXCEEDED,
    last_reason=Reason.MAX_FAILURES_EXCEEDED,
)
EXHAUSTED = JobState(
    stage=Stage.FAILED, reason=Reason.TIERS_EXHAUSTED, last_number=5, tier="spot-b", tiers=(SPENT,), failures=3
)
SUCCEEDED = JobState(stage=Stage.SUCCEEDED, reason=Reason.COMPLETED, last_number=2)


def test_a_previous_run_of_another_folder_is_named_with_it(place: PreviousRun) -> None:
    place.left(SUCCEEDED)
    place.folder.save_run(replace(THEN, folder="/home/me/bert"))
    with pytest.raises(
        InvalidSpec, match=r"a previous run, in /home/me/bert: .*to keep it, set another metadata\.name"
    ):
        start_from(StartMode.NEW, place.folder, place.log, replace(NOW, folder="/home/me/gpt"))
    with pytest.raises(InvalidSpec, match=r"a previous run: [^;]*; --fresh removes it with its checkpoints and [^;]*$"):
        start_from(StartMode.NEW, place.folder, place.log, replace(NOW, folder="/home/me/bert"))


@pytest.mark.parametrize("begin", list(StartMode))
def test_without_a_previous_run_every_mode_starts_a_new_run(place: PreviousRun, begin: StartMode) -> None:
    start = start_from(begin, place.folder, place.log, NOW)
    assert (start.state, start.run, start.resumed) == (JobState(), NOW, False)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (SUSPENDED, r"unfinished \(Suspended\); --continue resumes it from .*, --fresh "),
        (EXHAUSTED, r"failed \(TiersExhausted\); --continue retries it from .*, --fresh "),
        (SUCCEEDED, r"it has succeeded; --fresh (?!.*--continue)"),
    ],
)
def test_without_an_option_a_previous_run_is_not_touched(place: PreviousRun, state: JobState, expected: str) -> None:
    place.left(state)
    place.commit(40)
    with pytest.raises(InvalidSpec, match=expected):
        start_from(StartMode.NEW, place.folder, place.log, NOW)
    assert place.folder.load() == state
    assert place.log.newest() is not None


def test_without_an_option_existing_checkpoints_are_not_touched(place: PreviousRun) -> None:
    place.commit(40)
    with pytest.raises(InvalidSpec, match=r"up to step 40; --continue"):
        start_from(StartMode.NEW, place.folder, place.log, NOW)


def test_fresh_deletes_state_and_checkpoints(place: PreviousRun) -> None:
    place.left(EXHAUSTED)
    place.commit(40)
    start = start_from(StartMode.FRESH, place.folder, place.log, NOW)
    assert (start.state, start.run, start.resumed) == (JobState(), NOW, False)
    assert place.folder.load() is None
    assert place.log.read().seq == -1
    assert not [path for path in place.bucket.rglob("*") if path.is_file()]


@pytest.mark.parametrize("torn", ["00000000.json", "00000001.json"])
def test_fresh_deletes_a_corrupt_commit_log_of_this_job(place: PreviousRun, torn: str) -> None:
    """The owner is known from another entry or from the previous run."""
    place.folder.save(SUSPENDED)
    place.folder.save_run(replace(THEN, uri=NOW.uri))
    place.commit(40)
    (place.bucket / "digits" / "log" / torn).write_text('{"seq": 1')
    assert start_from(StartMode.FRESH, place.folder, place.log, NOW) == RunStart(JobState(), NOW)
    assert not [path for path in place.bucket.rglob("*") if path.is_file()]


def test_fresh_does_not_delete_a_corrupt_log_of_unknown_owner(place: PreviousRun) -> None:
    place.folder.save(SUSPENDED)
    place.folder.save_run(replace(THEN, uri="file:///elsewhere"))
    place.commit(40)
    entry = place.bucket / "digits" / "log" / "00000000.json"
    entry.write_text('{"seq": 1')
    with pytest.raises(LogCorrupt, match=r"delete file:\S+ yourself"):
        start_from(StartMode.FRESH, place.folder, place.log, NOW)
    assert entry.exists()
    assert place.folder.load() == SUSPENDED


@pytest.mark.parametrize("name", ["state.json", "run.json"])
@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[]"])
def test_an_unreadable_state_is_removed_without_loss_or_by_fresh(place: PreviousRun, name: str, content: bytes) -> None:
    """Regression: the error recommended --fresh, which removes the checkpoints, too."""
    later = replace(NOW, began=1000.0)
    place.left(SUSPENDED)
    place.commit(40, at=1.0)
    (place.folder.path / name).write_bytes(content)
    with pytest.raises(EnvironmentFailure, match=f"{name}: .*; remove it, and --continue resumes from the newest"):
        start_from(StartMode.RESUME, place.folder, place.log, later)
    (place.folder.path / name).unlink()
    start = start_from(StartMode.RESUME, place.folder, place.log, later)
    assert (start.state, start.resumed) == (JobState(), True)
    shutil.rmtree(place.bucket)
    place.left(SUSPENDED)
    (place.folder.path / name).write_bytes(content)
    assert start_from(StartMode.FRESH, place.folder, place.log, NOW) == RunStart(JobState(), NOW)
    assert start_from(StartMode.NEW, place.folder, place.log, NOW) == RunStart(JobState(), NOW)


def test_resume_continues_the_same_run(place: PreviousRun) -> None:
    place.left(SUSPENDED)
    start = start_from(StartMode.RESUME, place.folder, place.log, NOW)
    assert (start.state, start.run, start.resumed) == (SUSPENDED, THEN, True)


def test_resuming_an_exhausted_job_resets_its_tiers_and_keeps_the_cost(place: PreviousRun) -> None:
    place.left(EXHAUSTED)
    start = start_from(StartMode.RESUME, place.folder, place.log, NOW)
    assert start.state == JobState(last_number=5, tiers=(replace(SPENT, failures=0, exhausted_by=None),))
    assert start.state.spent_usd == EXHAUSTED.spent_usd


def test_resume_continues_from_checkpoints_without_a_state(place: PreviousRun) -> None:
    place.commit(40, at=-1000.0)
    start = start_from(StartMode.RESUME, place.folder, place.log, NOW)
    assert (start.state, start.run, start.resumed) == (JobState(), NOW, True)


def test_a_run_that_takes_over_checkpoints_keeps_their_uid(place: PreviousRun) -> None:
    place.commit(40, at=-1000.0, uid="theirs")
    assert start_from(StartMode.RESUME, place.folder, place.log, replace(NOW, uid="mine")).run.uid == "theirs"


# --- a live writer in another folder --------------------------------------------------------------------------------


@pytest.mark.parametrize("begin", [StartMode.FRESH, StartMode.RESUME])
@pytest.mark.parametrize(
    ("ago", "alive"), [(0.0, True), (59.0, True), (61.0, False), (-3600.0, True)], ids=["now", "59 s", "61 s", "ahead"]
)
def test_a_log_that_another_run_writes_is_neither_deleted_nor_taken_over(
    place: PreviousRun, begin: StartMode, ago: float, alive: bool
) -> None:
    """Regression: --fresh with another --state-dir deleted 1,140 steps of a running job."""
    place.commit(40, at=NOW.began - ago, uid="theirs")
    before = place.log.read()
    if alive:
        with pytest.raises(EnvironmentFailure, match=r"attempt 1 of another run .* has written step 40 .* ago"):
            start_from(begin, place.folder, place.log, NOW)
        assert place.log.read() == before
        return
    start = start_from(begin, place.folder, place.log, NOW)
    assert start.resumed is (begin is StartMode.RESUME)


def test_a_writer_with_long_intervals_counts_as_alive_for_longer(place: PreviousRun) -> None:
    for step, at in ((10, -700.0), (20, -400.0), (30, -100.0)):
        place.commit(step, at=at, uid="theirs")
    with pytest.raises(EnvironmentFailure, match="it has written nothing for 900 s"):
        start_from(StartMode.FRESH, place.folder, place.log, NOW)


# --- missing checkpoints --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", ["nothing", "an older log"])
def test_resume_is_refused_when_recorded_checkpoints_are_missing(place: PreviousRun, left: str) -> None:
    """Regression: with a file system that was not mounted, the run silently started at step 0."""
    if left == "an older log":
        place.commit(7)
    known = Progress(482, 1000, 40.0, 3)
    place.left(replace(SUSPENDED, progress=known))
    with pytest.raises(EnvironmentFailure, match=r"step 482 was committed, and the commit log has .* now"):
        start_from(StartMode.RESUME, place.folder, place.log, NOW)
    assert start_from(StartMode.FRESH, place.folder, place.log, NOW) == RunStart(JobState(), NOW)


def test_resume_is_refused_with_another_python_version(place: PreviousRun) -> None:
    place.left(SUSPENDED)
    with pytest.raises(EnvironmentFailure, match=r"Python 3\.11"):
        start_from(StartMode.RESUME, place.folder, place.log, RunIdentity(50.0, "3.13", "2.58.1", NOW.uri))


def test_the_attempt_of_a_killed_runner_ends_at_the_runners_last_record(place: PreviousRun) -> None:
    """Regression: the cost included the time until --continue, and SuspendRequested was recorded without a request."""
    spec = JobSpec(tiers=(Tier("spot-a", price=Price(3600.0)),))
    attempt = Attempt(2, "spot-a", 11.0, seen=True, running_at=12.0, all_ready_at=12.0, known=KnownPods(("w1",)))
    place.left(JobState(stage=Stage.RUNNING, attempt=attempt, last_number=2, tier="spot-a", clock=20.0, nodes=1))
    start = start_from(StartMode.RESUME, place.folder, place.log, NOW)
    history = (Billed(24.0, 4.0, 4.0, 1), Committed(25.0, 2, "spot-a", 40))
    start, moves = close_interrupted_attempt(start, spec, place.log, history)
    assert start.state.stage is Stage.IDLE
    assert start.state.failures == 0
    assert start.state.spent_usd == pytest.approx(4.0), "until the last record, not until now"
    assert [(each.at, each.move.reason) for each in moves] == [(24.0, Reason.INTERRUPTED), (24.0, Reason.GONE)]
    assert start.state.history[-1].ended_at == 24.0
    assert start.state.history[-1].reason is Reason.INTERRUPTED


def test_commits_that_a_killed_runner_did_not_record_are_recorded_by_the_next() -> None:
    first, second, third = (Committed(20.0 + step, 1, "spot-a", step) for step in (20, 40, 60))
    assert unrecorded_commits([first, second, third], (Noted(5.0, "x"), first)) == [second, third]
    assert unrecorded_commits([first, replace(first, attempt=2)], (first,)) == [replace(first, attempt=2)]
