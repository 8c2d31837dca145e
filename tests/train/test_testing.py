"""`interrupt_at`, with which users test their programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotladder import train
from spotladder.train.testing import interrupt_at
from tests.searching import examples
from tests.train.builders import train as program_on

ran: list[tuple[int, int]] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def program() -> list[int]:
    """Returns the steps that its last attempt committed. `ran` collects the attempt and number of every step."""
    job = train.current()
    return program_on(job, 30, on_step=lambda step: ran.append((job.attempt, step)))


def steps_of(attempt: int) -> list[int]:
    return [step for number, step in ran if number == attempt]


def test_without_notice_uncommitted_steps_are_repeated() -> None:
    assert interrupt_at(program, step=[12, 25], notice=False) == [30]
    assert (steps_of(1)[-1], steps_of(2)[0], steps_of(2)[-1], steps_of(3)[0]) == (12, 11, 25, 21)


@settings(max_examples=examples(12), deadline=None)
@given(
    steps=st.lists(st.integers(1, 29), max_size=4, unique=True).map(sorted),
    notice=st.booleans(),
    interval=st.sampled_from(["1steps", "7steps", "1h"]),
)
def test_interruptions_do_not_change_the_result(steps: list[int], notice: bool, interval: str) -> None:
    def result() -> int:
        job = train.current()
        program_on(job, 30)
        with job.resume() as found:
            assert found is not None
            return int((found.path / "sum").read_text())

    assert interrupt_at(result, step=steps, notice=notice, interval=interval) == sum(range(31))


def test_a_step_that_the_program_never_reaches_is_an_error() -> None:
    with pytest.raises(AssertionError, match="without a call of should_commit"):
        interrupt_at(program, step=31)


def while_loop(*, stops: bool) -> int:
    """A program whose number of steps is not known before."""
    job, total, step = train.current(), 0, 0
    with job.resume() as found:
        if found:
            total, step = int((found.path / "total").read_text()), found.step
    while total < 400:
        step += 1
        total += step
        ran.append((job.attempt, step))
        if job.should_commit(step):
            with job.commit(step) as folder:
                (folder / "total").write_text(str(total))
        if stops and job.stopping:
            job.flush()
            sys.exit(75)
    return total


@pytest.mark.parametrize("notice", [True, False])
def test_a_while_loop_resumes_where_it_exited(notice: bool) -> None:
    assert interrupt_at(lambda: while_loop(stops=True), step=[4, 17], notice=notice) == 406
    assert (steps_of(1)[-1], steps_of(2)[0]) == ((4, 5) if notice else (4, 1))


def test_a_notice_that_the_program_ignores_is_named() -> None:
    with pytest.raises(AssertionError, match=r"ignored the notice at step 4 .* when job\.stopping is true"):
        interrupt_at(lambda: while_loop(stops=False), step=4)


def test_other_exit_codes_are_those_of_the_program() -> None:
    with pytest.raises(SystemExit, match="3"):
        interrupt_at(lambda: sys.exit(3), step=4)
    with pytest.raises(AssertionError, match="exited with code 75 before step 4, without a notice"):
        interrupt_at(lambda: sys.exit(75), step=4)


def test_errors_of_the_program_are_raised() -> None:
    def broken() -> None:
        nothing: dict[int, Any] = {}
        program_on(train.current(), 30, on_step=lambda step: nothing[step])

    with pytest.raises(KeyError):
        interrupt_at(broken, step=5)


def test_the_environment_is_restored(tmp_path: Path) -> None:
    before = dict(os.environ)
    interrupt_at(program, step=5, folder=tmp_path)
    assert dict(os.environ) == before
    assert (tmp_path / "rehearsal" / "log").is_dir()
