"""An explicit-state model checker that runs the real commit log under every interleaving.

A program is ordinary code that uses a `CommitLog`. Its next request depends only on the responses that it has received.
A state therefore consists of the store's objects, the responses of each program, and the requests in transit. From a
state, each program may take its next step, or the store may not respond to a request: the program then gets
StoreUnavailable, and the request arrives at any later time, or never. A program that takes no further step has crashed.
The invariants hold in every state, and so for a crash at every point.

The checker uses no threads and no clock: it runs a program again from its beginning until the program sends a request
that has no response yet. It visits each state once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spotladder.checkpoints.entries import Commit, Entry, FileEntry, Start
from spotladder.checkpoints.history import History
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.store import LARGEST_OBJECT, ObjectMeta, ObjectMissing, Store
from spotladder.errors import Fenced, StoreUnavailable
from tests.checkpoints.memory_store import MemoryStore, file_entry

JOB = "digits"
FILE = b"weights"

Event = tuple[Any, ...]
Request = tuple[Any, ...]
Answer = Any
Program = Callable[["ProgramContext"], None]
Objects = frozenset[tuple[str, bytes]]

READS = ("get", "list")
ALL = ("put_if_absent", "get", "list", "delete")
UNANSWERED = "unanswered"
MISSING = "missing"


class NeedsAnswer(BaseException):
    """The program has sent a request that has no response yet."""

    def __init__(self, request: Request) -> None:
        self.request = request


class ScriptedStore(Store):
    """Returns the given responses in order, then stops the program."""

    uri = "model://"

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = iter(answers)

    def _ask(self, *request: Any) -> Any:
        answer = next(self._answers, None)
        if answer is None:
            raise NeedsAnswer(request)
        if answer[0] == UNANSWERED:
            raise StoreUnavailable("no answer")
        if answer[0] == MISSING:
            raise ObjectMissing(str(request))
        return answer[1]

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return bool(self._ask("put_if_absent", key, data))

    def get(self, key: str, most: int = LARGEST_OBJECT) -> bytes:
        return bytes(self._ask("get", key))

    def head(self, key: str) -> ObjectMeta | None:
        return self._ask("head", key)  # type: ignore[no-any-return]

    def list(self, prefix: str, after: str | None = None) -> Iterator[ObjectMeta]:
        return iter([ObjectMeta(key, size) for key, size in self._ask("list", prefix, after)])

    def put_file(self, key: str, path: Path) -> FileEntry:
        self._ask("put", key, FILE)
        return file_entry(key, FILE)

    def get_file(self, key: str, path: Path | None) -> FileEntry:
        return file_entry(key, self.get(key))

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._ask("delete", key)


@dataclass
class ProgramContext:
    """The arguments of a program: its own `ScriptedStore` with the log, and a list for its events."""

    store: ScriptedStore
    name: str
    events: list[Event] = field(default_factory=list)

    def log(self) -> CommitLog:
        names = (f"{self.name}{number}" for number in itertools.count())
        return CommitLog(self.store, JOB, clock=lambda: 0.0, pause=lambda _: None, new_nonce=lambda: next(names))


State = tuple[int, tuple[int, ...], tuple[int, ...], int]
"""Number of the store's contents, number of each program's responses, numbers of the requests in transit, faults so
far."""


class Numbers:
    """Assigns a small number to every value, so that states are cheap to compare and results can be cached."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self.values: list[Any] = []

    def of(self, value: Any) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


class Checker:
    """Visits all states that the programs can reach with at most `faults` unanswered requests."""

    def __init__(self, programs: dict[str, Program], faults: int = 0, *, faulty: tuple[str, ...] = ALL) -> None:
        self.programs = list(programs.items())
        self.faults = faults
        self.faulty = faulty
        self.states = 0
        self.ends: set[tuple[tuple[Event, ...], ...]] = set()
        self._objects = Numbers()
        self._requests = Numbers()
        self._answer = Numbers()
        self._answers = Numbers()
        self._steps: dict[tuple[int, int], tuple[int | None, tuple[Event, ...]]] = {}
        self._performed: dict[tuple[int, int], tuple[int, int]] = {}
        self._longer: dict[tuple[int, int, int], int] = {}
        self._histories: dict[Objects, tuple[History, tuple[Entry, ...]]] = {}
        self._checked: set[tuple[int, tuple[tuple[Event, ...], ...]]] = set()

    def run(self) -> Checker:
        nothing = self._answers.of(())
        first: State = (self._objects.of(frozenset()), tuple(nothing for _ in self.programs), (), 0)
        seen = {first}
        open_states = [first]
        while open_states:
            state = open_states.pop()
            self.states += 1
            events = tuple(self._step(number, answers)[1] for number, answers in enumerate(state[1]))
            if (state[0], events) not in self._checked:
                self._checked.add((state[0], events))
                self._check(self._objects.values[state[0]], [event for one in events for event in one])
            following = list(self._following(state))
            if not following:
                self.ends.add(events)
            for after in following:
                if after not in seen:
                    seen.add(after)
                    open_states.append(after)
        return self

    def _step(self, number: int, answers: int) -> tuple[int | None, tuple[Event, ...]]:
        """The number of the program's next request (None: it has ended) and its events so far."""
        known = self._steps.get((number, answers))
        if known is None:
            name, program = self.programs[number]
            context = ProgramContext(ScriptedStore(self._answers.values[answers]), name)
            request: int | None = None
            try:
                program(context)
            except NeedsAnswer as needs:
                request = self._requests.of(needs.request)
            except Fenced:
                context.events.append(("fenced",))
            except StoreUnavailable:
                context.events.append(("gave up",))
            known = self._steps[number, answers] = (request, tuple(context.events))
        return known

    def _shortest(self, number: int, answers: int) -> int:
        """The responses; for a program that has ended, only its events, which makes equivalent states equal."""
        request, events = self._step(number, answers)
        if request is not None:
            return answers
        shortest = self._answers.of(("ended", events))
        self._steps[number, shortest] = (None, events)
        return shortest

    def _following(self, state: State) -> Iterator[State]:
        objects, answers, in_transit, faults = state
        for number, so_far in enumerate(answers):
            request, _ = self._step(number, so_far)
            if request is None:
                continue
            changed, answer = self._perform(objects, request)
            yield changed, self._answered(answers, number, answer), in_transit, faults
            if faults < self.faults and (kind := self._requests.values[request][0]) in self.faulty:
                late = in_transit if kind in READS else tuple(sorted((*in_transit, request)))
                unanswered = self._answer.of((UNANSWERED,))
                yield objects, self._answered(answers, number, unanswered), late, faults + 1
        for index, request in enumerate(in_transit):
            changed, _ = self._perform(objects, request)
            if changed != objects:  # Otherwise nothing follows that does not follow if it never arrives.
                yield changed, answers, in_transit[:index] + in_transit[index + 1 :], faults

    def _perform(self, objects: int, request: int) -> tuple[int, int]:
        known = self._performed.get((objects, request))
        if known is None:
            changed, answer = perform(self._objects.values[objects], self._requests.values[request])
            known = self._performed[objects, request] = (self._objects.of(changed), self._answer.of(answer))
        return known

    def _answered(self, answers: tuple[int, ...], number: int, answer: int) -> tuple[int, ...]:
        so_far = answers[number]
        longer = self._longer.get((number, so_far, answer))
        if longer is None:
            complete = self._answers.of((*self._answers.values[so_far], self._answer.values[answer]))
            longer = self._longer[number, so_far, answer] = self._shortest(number, complete)
        return (*answers[:number], longer, *answers[number + 1 :])

    # --- invariants of every state ----------------------------------------------------------------------------------

    def _check(self, objects: Objects, events: list[Event]) -> None:
        history, entries = self._history(objects)
        keys = {key for key, _ in objects}
        what = [entry.path if isinstance(entry, Commit) else entry.nonce for entry in entries]
        assert len(what) == len(set(what)), f"an entry was appended twice: {what}"
        steps = [(entry.writer, entry.step) for entry in entries if isinstance(entry, Commit)]
        assert len(steps) == len(set(steps)), f"a start committed a step twice: {steps}"
        for commit in history.commits:
            for file in commit.files:
                assert f"{JOB}/{commit.path}/{file.name}" in keys, f"{commit.path} is valid and its files do not exist"
        self._check_order(entries)
        self._check_promises(history, events)

    @staticmethod
    def _check_order(entries: tuple[Entry, ...]) -> None:
        newest: Start | None = None
        for entry in entries:
            if isinstance(entry, Start):
                assert newest is None or newest.attempt <= entry.attempt, "an older attempt started after a newer one"
                newest = entry
            elif isinstance(entry, Commit) and newest:
                assert entry.writer == newest.nonce, f"a fenced writer's commit was accepted: {entry}"

    @staticmethod
    def _check_promises(history: History, events: list[Event]) -> None:
        """No acknowledged commit is lost, and every new writer knows the acknowledged commits of older ones."""
        counting = {commit.path for commit in history.commits}
        dropped = {path for event in events if event[0] == "drops" for path in event[1]}
        starts = {event[1]: event for event in events if event[0] == "started"}
        for event in events:
            if event[0] != "acknowledged":
                continue
            _, writer, path = event
            assert path in counting | dropped, f"{path} was acknowledged and is lost"
            for other, (_, _, seq, knew) in starts.items():
                older = starts[writer][2] < seq if writer in starts else True
                assert other == writer or not older or path in knew | dropped, (
                    f"{path} of {writer} was acknowledged, and {other}, which started later, does not know it"
                )
        for event in events:
            if event[0] == "resumed":
                assert event[2], f"a reader chose {event[1]} and its files were not there"

    def _history(self, objects: Objects) -> tuple[History, tuple[Entry, ...]]:
        """The history of the log in this state, and all of its entries."""
        logged = frozenset(item for item in objects if item[0].startswith(f"{JOB}/log/"))
        known = self._histories.get(logged)
        if known is None:
            store = MemoryStore()
            store.objects.update(logged)
            log = CommitLog(store, JOB, pause=lambda _: None)
            known = self._histories[logged] = (log.read(), tuple(log.tail()))
        return known


def perform(objects: Objects, request: Request) -> tuple[Objects, Answer]:
    """Execute a request on the store's objects atomically."""
    match request:
        case ("put_if_absent", key, data):
            if any(key == known for known, _ in objects):
                return objects, ("ok", False)
            return objects | {(key, data)}, ("ok", True)
        case ("put", key, data):
            return objects | {(key, data)}, ("ok", True)
        case ("get", key):
            found = [data for known, data in objects if known == key]
            return objects, ("ok", found[0]) if found else (MISSING,)
        case ("head", key):
            found = [data for known, data in objects if known == key]
            return objects, ("ok", ObjectMeta(key, len(found[0])) if found else None)
        case ("list", prefix, after):
            keys = sorted(
                (key, len(data)) for key, data in objects if key.startswith(prefix) and (after is None or key > after)
            )
            return objects, ("ok", tuple(keys))
        case ("delete", key):
            return frozenset(item for item in objects if item[0] != key), ("ok", None)
    raise AssertionError(request)
