"""The commit log under every interleaving of its users, with `model_checker`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from spotladder.checkpoints import entry_log as log_module
from spotladder.checkpoints import garbage
from spotladder.checkpoints import writer as writer_module
from spotladder.checkpoints.entries import Entry, decode, encode
from spotladder.checkpoints.history import History
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.writer import Writer
from tests.checkpoints.model_checker import ALL, Checker, Program
from tests.checkpoints.model_programs import controller, patient_writer, reader, writer


@pytest.fixture(autouse=True)
def fast_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cache decoded entries, because the checker runs programs many times from their beginning."""
    known: dict[tuple[bytes, str, int], Entry] = {}

    def cached(data: bytes, name: str, seq: int) -> Entry:
        return known.get((data, name, seq)) or known.setdefault((data, name, seq), decode(data, name, seq))

    monkeypatch.setattr(log_module, "decode", cached)


@pytest.fixture(autouse=True)
def compact_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every collection writes a snapshot and deletes the entries before it."""
    monkeypatch.setattr(garbage, "COMPACT_AFTER", 0)


@dataclass(frozen=True)
class LogScenario:
    """`faulty` are the kinds of requests that may stay unanswered, `faults` their maximum number in one run. `tries` is
    how often the log itself tries; 1 makes outages longer than its retries."""

    programs: dict[str, Program]
    faults: int = 0
    faulty: tuple[str, ...] = ALL
    tries: int = log_module.TRIES

    def run(self, monkeypatch: pytest.MonkeyPatch) -> Checker:
        monkeypatch.setattr(log_module, "TRIES", self.tries)
        return Checker(self.programs, self.faults, faulty=self.faulty).run()


SCENARIOS = {
    "two attempts": LogScenario({"a": writer(1, 1, 2), "b": writer(2, 3)}, 1),
    "two attempts, two requests unanswered": LogScenario({"a": writer(1, 1), "b": writer(2, 2)}, 2),
    "two starts inside one attempt": LogScenario({"a": writer(1, 1, 2), "b": writer(1, 1)}, 1),
    "two starts inside one attempt, two unanswered": LogScenario({"a": writer(1, 1), "b": writer(1)}, 2),
    "three attempts": LogScenario({"a": writer(1, 1), "b": writer(2, 1), "c": writer(3)}),
    "the controller ends the job": LogScenario({"a": writer(1, 1, 2), "c": controller("Failed")}, 1),
    "collection during an older writer": LogScenario({"a": writer(1, 1), "b": writer(2, 3, 4, keep=1, files=True)}),
    "collection, an older start unanswered": LogScenario(
        {"a": writer(1, 1, keep=1), "b": writer(2)}, 1, ("put_if_absent",)
    ),
    "collection, an older commit unanswered": LogScenario(
        {"a": writer(1, 1), "b": writer(2, keep=1)}, 1, ("put_if_absent",)
    ),
    "collection that stops halfway": LogScenario({"a": writer(1, 1, 2, keep=1), "b": writer(2)}, 1, ("delete",)),
    "two collections": LogScenario({"a": writer(1, 1, keep=1), "b": writer(1, keep=1)}),
    "two attempts that outlast an outage": LogScenario(
        {"a": patient_writer(1, 1), "b": patient_writer(2, 2)}, 2, tries=1
    ),
    "two starts inside one attempt that outlast an outage": LogScenario(
        {"a": patient_writer(1, 1), "b": patient_writer(1)}, 2, tries=1
    ),
    "a start that outlasts an outage during a collection": LogScenario(
        {"a": writer(1, 1, keep=1), "b": patient_writer(2)}, 1, ("put_if_absent",), tries=1
    ),
    "the controller ends the job during an outage": LogScenario(
        {"a": patient_writer(1, 1), "c": controller("Failed")}, 2, tries=1
    ),
    "a reader during a collection": LogScenario({"a": writer(1, 1, 2, 3, keep=1, files=True), "r": reader()}),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_invariants_hold_in_every_interleaving(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = SCENARIOS[name]
    checker = scenario.run(monkeypatch)
    print(name, checker.states, "states", len(checker.ends), "ends")
    assert any(("fenced",) in events for end in checker.ends for events in end) or "r" in scenario.programs
    assert any(all(("fenced",) not in events for events in end) for end in checker.ends)


# --- the checker can fail -------------------------------------------------------------------------------------------


AppendedBy = Callable[[CommitLog, History, Callable[[History], Entry]], tuple[History, Entry]]


def without_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writer, "_fence_start", lambda *_: None)


def without_nonce(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log does not recognize an entry whose response was lost: every retry appends a new one."""
    append: AppendedBy = CommitLog.append

    def forgetful(log: CommitLog, history: History, build: Callable[[History], Entry]) -> tuple[History, Entry]:
        tries = itertools.count()
        return append(log, history, lambda now: replace(build(now), nonce=f"{build(now).nonce}+{next(tries)}"))

    monkeypatch.setattr(CommitLog, "append", forgetful)


def without_check_after_create(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log trusts a successful create, although a compaction may have deleted the entry of that number."""
    append: AppendedBy = CommitLog.append

    def trusting(log: CommitLog, history: History, build: Callable[[History], Entry]) -> tuple[History, Entry]:
        entry = build(history)
        if log.store.put_if_absent(f"log/{entry.seq:08d}.json", encode(entry)):
            return history.then([entry]), entry
        return append(log, history, build)

    monkeypatch.setattr(CommitLog, "append", trusting)


def without_second_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log does not list a second time after reading."""

    def tail(log: CommitLog, after: int, known: dict[int, Entry]) -> list[Entry]:
        log._read_backwards([seq for seq in log._numbers(after) if seq not in known], known)
        return log_module._consecutive(known, after)[0]

    monkeypatch.setattr(CommitLog, "_tail", tail)


def files_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are deleted before the log drops their commits."""
    collect = garbage.collect

    def hasty(log: CommitLog, history: History, keep: int, *rest: Any, **more: Any) -> Any:
        garbage._delete(log, [commit.path for commit in garbage.garbage(log, history, keep)])
        return collect(log, history, keep, *rest, **more)

    monkeypatch.setattr(writer_module, "collect", hasty)


@pytest.mark.parametrize(
    ("broken", "name", "complaint"),
    [
        (without_fence, "two attempts", "a fenced writer's commit was accepted"),
        (without_fence, "two starts inside one attempt", "a fenced writer's commit was accepted"),
        (without_nonce, "two attempts", "appended twice"),
        (without_check_after_create, "collection during an older writer", "is lost"),
        (without_second_listing, "collection, an older start unanswered", "does not know it"),
        (files_first, "a reader during a collection", "its files do not exist"),
    ],
)
def test_a_broken_protocol_is_detected(
    broken: Callable[[pytest.MonkeyPatch], None], name: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    scenario = SCENARIOS[name]
    with pytest.raises(AssertionError, match=complaint):
        scenario.run(monkeypatch)
