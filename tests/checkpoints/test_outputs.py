"""Stored program output: written once, and of bounded size."""

from __future__ import annotations

import pytest

from spotladder.checkpoints import outputs
from spotladder.checkpoints.outputs import CUT, LONGEST, Output
from tests.checkpoints.memory_store import MemoryStore


@pytest.mark.parametrize(
    ("output", "key"),
    [
        (Output(3, 0, "driver"), "0003/driver.log.gz"),
        (Output(3, 1, "workers-0-1"), "0003.1/workers-0-1.log.gz"),
        (Output(12345, 0, "../Other Job/x"), "12345/other-job-x.log.gz"),
        (Output(1, 0, "…"), "0001/output.log.gz"),
    ],
)
def test_the_key_of_an_output(output: Output, key: str) -> None:
    assert output.key == key


def test_an_output_is_stored_once() -> None:
    store = MemoryStore()
    assert outputs.keep(store, Output(1, 0, "driver"), "first\n")
    assert not outputs.keep(store, Output(1, 0, "driver"), "second\n")
    assert outputs.read(store, [Output(1, 0, "driver"), Output(2, 0, "driver")]) == ["first\n", ""]


def test_a_job_with_the_name_of_a_deleted_one_has_its_own_outputs() -> None:
    """A program that does not use the library leaves no log, whose owner would refuse the second job."""
    folder, output = MemoryStore(), Output(1, 0, "driver")
    for uid in ("deleted", "new", ""):
        assert outputs.keep(outputs.of_job(folder, uid), output, f"of {uid}\n")
    for uid in ("deleted", "new", ""):
        store = outputs.of_job(folder, uid)
        assert (outputs.kept(store), outputs.read(store, [output])) == ([output], [f"of {uid}\n"])
    assert "outputs/new/0001/driver.log.gz" in folder.objects
    assert outputs.kept(outputs.of_job(folder, "another")) == []


def test_outputs_are_listed_by_attempt_with_the_driver_first() -> None:
    store = MemoryStore()
    given = [Output(2, 0, "a-rank"), Output(2, 0, "driver"), Output(1, 1, "driver"), Output(1, 0, "driver")]
    for output in given:
        outputs.keep(store, output, "x")
    store.put_if_absent("readme.txt", b"by hand")
    assert outputs.kept(store) == [given[3], given[2], given[1], given[0]]
    assert outputs.kept(store, 2) == [given[1], given[0]]


def test_a_long_output_is_truncated_to_its_last_lines() -> None:
    store, output = MemoryStore(), Output(1, 0, "driver")
    text = "".join(f"step {step} 😀\n" for step in range(50_000))
    outputs.keep(store, output, text)
    (text_read,) = outputs.read(store, [output])
    assert text_read.startswith(CUT + "step ")
    assert text_read.endswith("step 49999 😀\n")
    assert LONGEST - 100 < len(text_read.encode()) <= LONGEST + len(CUT.encode())
    assert text.endswith(text_read.removeprefix(CUT))


def test_the_end_of_a_line_that_a_progress_bar_writes_again_and_again_is_kept() -> None:
    bars = "".join(f"{step} of 50000\r" for step in range(50_000))
    shown = outputs.end_of(f"epoch 1\n{bars}")
    assert shown.removeprefix(CUT).startswith("3")
    assert shown.endswith("\r49999 of 50000\r")


def test_the_outputs_of_the_newest_attempts_are_kept() -> None:
    store = MemoryStore()
    for attempt in range(1, 26):
        outputs.keep(store, Output(attempt, 0, "driver"), "x")
        outputs.keep(store, Output(attempt, 0, "rank"), "x")
    assert outputs.trim(store) == 10
    assert {output.attempt for output in outputs.kept(store)} == set(range(6, 26))
    assert outputs.trim(store) == 0


def test_the_outputs_of_the_newest_restarts_of_an_attempt_are_kept() -> None:
    store = MemoryStore()
    for restart in range(9):
        outputs.keep(store, Output(1, restart, "rank"), "x")
    outputs.keep(store, Output(2, 0, "rank"), "x")
    assert outputs.trim(store) == 4
    assert [(output.attempt, output.title) for output in outputs.kept(store)] == [
        *((1, f"rank after restart {restart}") for restart in range(4, 9)), (2, "rank"),
    ]  # fmt: skip
