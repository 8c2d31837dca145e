"""The fast `replace` returns what `dataclasses.replace` returns."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

from spotladder.core import model
from spotladder.core.copying import replace
from spotladder.core.model import JobState, PodSeen, Progress, Stage, TierRecord
from tests.core.builders import SteppedJob, attempt, head, lost, worker

RECORDS = [
    kind
    for _name, kind in inspect.getmembers(model, inspect.isclass)
    if dataclasses.is_dataclass(kind) and len(dataclasses.fields(kind)) > 1
]


@pytest.mark.parametrize("kind", RECORDS)
def test_the_copy_of_every_record_is_equal_to_that_of_dataclasses(kind: Any) -> None:
    values = {entry.name: object() for entry in dataclasses.fields(kind)}
    record, other = kind(**values), object()
    for name, value in values.items():
        made = replace(record, **{name: other})
        assert made == dataclasses.replace(record, **{name: other})
        assert (type(made), getattr(made, name), getattr(record, name)) == (kind, other, value)
    assert replace(record) == record


def test_a_copy_is_frozen_hashes_the_same_and_shows_the_same() -> None:
    one, other = replace(TierRecord("a"), failures=3), dataclasses.replace(TierRecord("a"), failures=3)
    assert (hash(one), repr(one)) == (hash(other), repr(other))
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.failures = 4  # type: ignore[misc]


def test_every_field_of_the_state_of_a_job_is_copied() -> None:
    job = SteppedJob().running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=5)
    assert replace(job.state, clock=9.0) == dataclasses.replace(job.state, clock=9.0)
    assert dataclasses.astuple(replace(job.state)) == dataclasses.astuple(job.state)


def test_an_unknown_field_is_an_error_and_changes_nothing() -> None:
    state = JobState()
    with pytest.raises(TypeError, match="JobState has no field 'colour'"):
        replace(state, stage=Stage.RUNNING, colour="blue")  # type: ignore[call-arg]
    assert state == JobState()


def test_a_record_of_any_module_is_copied() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Pair:
        a: int
        b: int = 2

    assert replace(Pair(1), a=3) == Pair(3, 2)


def test_a_class_without_slots_is_refused() -> None:
    @dataclasses.dataclass(frozen=True)
    class Open:
        a: int
        b: int

    with pytest.raises(TypeError, match=r"^Open is not a record with slots: use dataclasses\.replace$"):
        replace(Open(1, 2), a=3)


def test_a_class_that_checks_its_values_is_refused() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Checked:
        a: int
        b: int

        def __post_init__(self) -> None:
            assert self.a < self.b

    with pytest.raises(TypeError, match=r"use dataclasses\.replace"):
        replace(Checked(1, 2), a=3)


def test_records_of_one_observation_are_independent() -> None:
    pod = PodSeen("w")
    assert (replace(pod, ready=False).ready, pod.ready) == (False, True)
    assert replace(Progress(1, 2), step=2).step == 2
