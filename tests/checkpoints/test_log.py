"""The commit log: reading, starting, fencing, ending, and errors of damaged logs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from spotladder.checkpoints import entry_log as log_module
from spotladder.checkpoints.entries import FileEntry, Snapshot, encode
from spotladder.checkpoints.entry_log import TRIES, ForeignLog
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.progress import Follower, progress
from spotladder.core.model import CommitSize, Progress
from spotladder.errors import Fenced, InvalidSpec, LogCorrupt, StoreUnavailable
from tests.checkpoints.builders import AT, PauseClock, a_log, committed, uploaded
from tests.checkpoints.memory_store import MemoryStore


def test_an_empty_log(log: CommitLog) -> None:
    assert log.tail() == []
    assert log.newest() is None
    assert log.commits() == ()
    assert progress(log) == Progress()


def test_a_job_from_start_to_end(log: CommitLog, store: MemoryStore) -> None:
    writer = log.start(1, "spot-a")
    commit = writer.commit(10, uploaded(writer, 10), total=100, metrics={"loss": 0.5})
    end = log.end_as_controller("Succeeded", message="all done")
    assert [entry.kind for entry in log.tail()] == ["start", "commit", "end"]
    assert log.tail(after=0) == [commit, end]
    assert log.newest() == commit
    assert commit.metrics == {"loss": 0.5}
    assert (commit.path, commit.attempt, commit.tier, commit.at) == ("attempts/0001/ckpt-000010", 1, "spot-a", AT)
    files = CommitSize(commit.size, commit.size)
    assert progress(log) == Progress(
        step=10, total=100, committed_at=AT, attempt=1, size=files, start=0, commit=1, committed_by=1
    )
    assert log.read().end == end
    assert all(key.startswith("digits/") for key in store.objects)


def test_every_start_has_its_own_folder(log: CommitLog) -> None:
    folders = [log.start(attempt).folder(120) for attempt in (1, 1, 1, 2, 2, 12345)]
    assert folders == [
        "attempts/0001/ckpt-000120",
        "attempts/0001.1/ckpt-000120",
        "attempts/0001.2/ckpt-000120",
        "attempts/0002/ckpt-000120",
        "attempts/0002.1/ckpt-000120",
        "attempts/12345/ckpt-000120",
    ]


@pytest.mark.parametrize("newer", [1, 2], ids=["restarted inside the attempt", "newer attempt"])
def test_an_older_writer_is_fenced(log: CommitLog, newer: int) -> None:
    old = log.start(1, "spot-a")
    committed(old, 1, 2)
    new = log.start(newer, "spot-b")
    for act in (lambda: old.commit(3, []), lambda: old.collect(1), old.check):
        with pytest.raises(Fenced, match=rf"attempt {newer} on tier spot-b has started after this writer of attempt 1"):
            act()
    assert [commit.step for commit in new.history.commits] == [1, 2]
    committed(new, 3)
    assert [commit.step for commit in log.commits()] == [1, 2, 3]


def test_an_older_attempt_cannot_start(log: CommitLog) -> None:
    log.start(2)
    with pytest.raises(Fenced, match="attempt 2 has started after attempt 1, which must stop"):
        log.start(1)


def test_a_fenced_writers_commit_in_the_log_is_ignored(log: CommitLog, store: MemoryStore) -> None:
    old = log.start(1)
    (commit,) = committed(old, 1)
    log.start(2)
    stray = replace(commit, seq=3, step=2, nonce="other", path="attempts/0001/ckpt-000002")
    store.objects["digits/log/00000003.json"] = encode(stray)
    assert [found.step for found in log.commits()] == [1]


def test_repeating_a_commit_is_idempotent(log: CommitLog) -> None:
    writer = log.start(1)
    (commit,) = committed(writer, 1)
    assert committed(writer, 1) == [commit]
    assert [entry.kind for entry in log.tail()] == ["start", "commit"]


def test_a_folder_of_an_earlier_start_is_rejected(log: CommitLog) -> None:
    (commit,) = committed(log.start(1), 1)
    with pytest.raises(InvalidSpec, match="ckpt-000001: has the commit of step 1 of an earlier start"):
        log.start(1).commit(1, [], path=commit.path)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([FileEntry("w", 7, "x"), FileEntry("more", 1, "x")], "ckpt-000001/more: is missing after its upload"),
        ([FileEntry("w", 9, "x")], "ckpt-000001/w: has 7 bytes instead of 9 after its upload"),
    ],
)
def test_a_commit_with_missing_files_is_rejected(log: CommitLog, files: list[FileEntry], says: str) -> None:
    writer = log.start(1)
    uploaded(writer, 1)
    with pytest.raises(StoreUnavailable, match=says):
        writer.commit(1, files)
    assert log.newest() is None
    assert committed(writer, 1)


@pytest.mark.parametrize(("step", "total"), [(2**63, 0), (1, 10**20)])
def test_a_number_that_no_reader_accepts_is_not_written(log: CommitLog, step: int, total: int) -> None:
    with pytest.raises(InvalidSpec, match=f"step {step} of {total}: expected numbers below 2.63"):
        log.start(1).commit(step, [], total=total)
    assert log.read().commits == ()


# --- the end --------------------------------------------------------------------------------------------------------


def test_the_controller_ends_a_job_once(log: CommitLog) -> None:
    assert log.end_as_controller("Failed") is None
    writer = log.start(1)
    first = log.end_as_controller("Failed", message="DeadlineExceeded")
    assert log.end_as_controller("Failed") == first
    with pytest.raises(Fenced, match=r"the job has ended .Failed."):
        writer.commit(1, [])
    assert [entry.kind for entry in log.tail()] == ["start", "end"]


def test_an_outcome_replaces_another_one(log: CommitLog) -> None:
    log.start(1)
    log.end_as_controller("Succeeded")
    log.end_as_controller("Failed")
    end = log.read().end
    assert end
    assert (end.outcome, end.writer) == ("Failed", "")


def test_a_controller_cannot_end_a_newer_attempt(log: CommitLog) -> None:
    log.start(2)
    with pytest.raises(Fenced, match="attempt 2 has started, attempt 1 cannot end the job"):
        log.end_as_controller("Failed", attempt=1)
    assert log.end_as_controller("Failed", attempt=2)


# --- damaged and foreign logs----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"namespace": "team-b"}, "belong to team-a/digits .uid 1., not to team-b/digits"),
        ({"uid": "2"}, "belong to team-a/digits .uid 1., not to team-a/digits .uid 2."),
    ],
)
def test_the_log_of_another_job_is_rejected(store: MemoryStore, other: dict[str, str], says: str) -> None:
    a_log(store, uid="1").start(1)
    stranger = a_log(store, **other)
    before = dict(store.objects)
    acts = (
        stranger.read,
        lambda: stranger.start(9),
        lambda: stranger.end_as_controller("x"),
        lambda: stranger.collect(1),
    )
    for act in acts:
        with pytest.raises(ForeignLog, match=rf"{says}.*: use another checkpoint address or job name; nothing was ch"):
            act()
    assert store.objects == before


@pytest.mark.parametrize(
    ("namespace", "owner"), [("team-a", "team-a/digits (uid 1)"), ("team-b", "a job of another namespace")]
)
def test_users_of_other_namespaces_do_not_learn_the_name_of_the_owner(
    store: MemoryStore, namespace: str, owner: str
) -> None:
    a_log(store, uid="1").start(1)
    with pytest.raises(ForeignLog) as found:
        a_log(store, namespace="team-b").read()
    assert f"these checkpoints belong to {owner}, not to team-b/digits" in found.value.message_for(namespace)


@pytest.mark.parametrize(
    ("name", "ignored"), [("README.md", False), ("1.json", False), (".DS_Store", True), ("", True)]
)
def test_foreign_objects_are_errors_except_those_of_tools(
    log: CommitLog, store: MemoryStore, name: str, ignored: bool
) -> None:
    log.start(1)
    store.objects[f"digits/log/{name}"] = b""
    if ignored:
        assert len(log.tail()) == 1
    else:
        with pytest.raises(LogCorrupt, match=f"digits/log/{name}: foreign object in a commit log"):
            log.tail()


def test_nothing_is_written_to_a_log_of_a_newer_version(log: CommitLog, store: MemoryStore) -> None:
    log.start(1)
    entry = json.loads(store.objects["digits/log/00000000.json"])
    store.objects["digits/log/00000000.json"] = json.dumps({**entry, "v": 2}).encode()
    before = dict(store.objects)
    for act in (lambda: log.start(2), lambda: log.end_as_controller("Failed"), lambda: log.collect(1)):
        with pytest.raises(LogCorrupt, match="upgrade spotladder"):
            act()
    assert store.objects == before


@pytest.mark.parametrize("job", ["a/b", "..", ".hidden", "/"])
def test_a_job_name_that_is_a_path_is_rejected(store: MemoryStore, job: str) -> None:
    with pytest.raises(InvalidSpec, match="is not a job name"):
        CommitLog(store, job)


# --- outages of the store -------------------------------------------------------------------------------------------


class UnresponsiveStore(MemoryStore):
    """A store that does not respond to the next `unanswered` creates of log entries; executes them if `executes`."""

    def __init__(self, executes: bool) -> None:
        super().__init__()
        self.executes = executes
        self.unanswered = 0

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if not self.unanswered or "/log/" not in key:
            return super().put_if_absent(key, data)
        self.unanswered -= 1
        if self.executes:
            super().put_if_absent(key, data)
        raise StoreUnavailable("503 Slow Down")


@pytest.mark.parametrize("executes", [True, False], ids=["lost response", "lost request"])
def test_an_unanswered_append_is_retried_and_appended_once(executes: bool) -> None:
    store = UnresponsiveStore(executes)
    clock = PauseClock()
    log = CommitLog(store, "digits", clock=clock, pause=clock.pause)
    writer = log.start(1)
    store.unanswered = TRIES - 1
    committed(writer, 1)
    assert [entry.kind for entry in log.tail()] == ["start", "commit"]
    assert clock.waits == sorted(clock.waits)
    assert clock.waits[0] < 1 < clock.waits[-1]


@pytest.mark.parametrize("executes", [True, False], ids=["lost response", "lost request"])
def test_a_failed_start_can_be_repeated_and_its_writer_commits(executes: bool) -> None:
    store = UnresponsiveStore(executes)
    log, tried = a_log(store), set[str]()
    store.unanswered = TRIES
    with pytest.raises(StoreUnavailable, match="503"):
        log.start(1, tried=tried)
    writer = log.start(1, tried=tried)
    committed(writer, 1)
    assert writer.log is log
    assert [entry.kind for entry in log.tail()] == ["start", "commit"]


def test_a_stale_listing_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    writer = a_log(store).start(1)
    a_log(store).end_as_controller("Failed")
    listings = []
    listed = CommitLog._numbers

    def stale(log: CommitLog, after: int) -> list[int]:
        listings.append(after)
        return listed(log, after) if len(listings) == TRIES else []

    with monkeypatch.context() as while_stale:
        while_stale.setattr(CommitLog, "_numbers", stale)
        with pytest.raises(Fenced, match="the job has ended"):
            writer.commit(1, [])

    writer = a_log(store).start(2)
    a_log(store).end_as_controller("Failed")
    monkeypatch.setattr(CommitLog, "_numbers", lambda *_: [])
    with pytest.raises(StoreUnavailable, match="exists but is not listed"):
        writer.commit(1, [])


# --- a bucket that was restored -------------------------------------------------------------------------------------


def test_a_writer_commits_into_a_bucket_that_was_rolled_back_and_leaves_no_gap(
    log: CommitLog, store: MemoryStore
) -> None:
    writer = log.start(1)
    committed(writer, 1)
    yesterday = dict(store.objects)
    committed(writer, 2, 3)
    store.objects = yesterday
    committed(writer, 4)
    assert [commit.step for commit in log.commits()] == [1, 4]


@pytest.mark.parametrize("emptied", [False, True])
def test_a_writer_whose_start_was_rolled_back_is_fenced_and_the_next_attempt_resumes(
    log: CommitLog, store: MemoryStore, emptied: bool
) -> None:
    committed(log.start(1), 1)
    yesterday = {} if emptied else dict(store.objects)
    writer = log.start(2)
    committed(writer, 2)
    store.objects = yesterday
    with pytest.raises(Fenced):
        committed(writer, 3)
    assert [commit.step for commit in log.commits()] == ([] if emptied else [1])
    committed(log.start(3), 2)
    assert log.read().attempt == 3


# --- following ------------------------------------------------------------------------------------------------------


class ReadCountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.gets = 0

    def arrived(self, request: str, key: str) -> None:
        self.gets += request == "get"


def test_a_follower_reads_each_entry_once() -> None:
    store = ReadCountingStore()
    log = a_log(store)
    follower = Follower(log)
    writer = log.start(1)
    for step in (1, 2, 3):
        committed(writer, step)
        assert follower.progress().step == step
        assert follower.progress().step == step
    assert store.gets == 4


def test_a_long_log_is_read_from_its_snapshot() -> None:
    store = ReadCountingStore()
    writer = a_log(store).start(1)
    committed(writer, *range(1, 101))
    writer.collect(2)
    committed(writer, 101)
    store.gets = 0
    history = a_log(store).read()
    assert [commit.step for commit in history.commits] == [99, 100, 101]
    assert (history.owner.namespace, history.attempt) == ("team-a", 1)
    assert store.gets <= log_module.AT_ONCE


def test_a_missing_first_entry_is_an_error(log: CommitLog, store: MemoryStore) -> None:
    committed(log.start(1), 1)
    del store.objects["digits/log/00000000.json"]
    with pytest.raises(LogCorrupt, match=r"00000000\.json: this log entry is missing"):
        log.read()


def test_a_writer_whose_log_has_no_start_is_fenced(log: CommitLog, store: MemoryStore) -> None:
    writer = log.start(1)
    seq = writer.history.seq + 1
    strange = Snapshot(seq, "n", AT, writer.history.owner, start=None, commits=(), dropped=(), end=None)
    store.put_if_absent(f"digits/log/{seq:08d}.json", encode(strange))
    with pytest.raises(Fenced, match="a log without this writer has started"):
        writer.check()


def test_the_error_has_the_address_of_a_torn_entry(log: CommitLog, store: MemoryStore) -> None:
    committed(log.start(1), 1)
    store.objects["digits/log/00000001.json"] = b"{"
    with pytest.raises(
        LogCorrupt,
        match=r"^memory:\S*/digits/log/00000001\.json: torn log entry \(1 bytes, not JSON\): restore .* or "
        r"a backup, or continue in a new checkpoint folder; nothing was changed$",
    ):
        log.read()
