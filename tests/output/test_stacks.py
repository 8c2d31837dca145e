"""The lines of stacks that Ray must print for every rank, as Python writes them."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spotladder.output.stacks import STACK_LINES, STACKS_FOLLOW
from spotladder.train.hangs import StackWatch, write_stacks


@contextmanager
def another_thread() -> Iterator[None]:
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="loader", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def test_every_line_of_the_stacks_of_all_threads_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "stacks").open("w") as file, another_thread():
        monkeypatch.setattr(sys, "__stderr__", file)
        write_stacks()
    lines = [line for line in (tmp_path / "stacks").read_text().splitlines() if line]
    assert sum(line.endswith("(most recent call first):") for line in lines) >= 2
    assert [line for line in lines if not re.search(STACK_LINES, line)] == []


def test_the_line_before_the_stacks_is_found(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    watch = StackWatch(rank=3, clock=lambda: now, write=lambda: None)
    for _ in range(6):
        now += 1.0
        watch.step()
    watch.close()
    now += 100.0
    assert watch.look()
    (message,) = caplog.messages
    assert message == f"rank 3 has made no step for 100 s (a step takes 1 s): {STACKS_FOLLOW}"
    assert re.search(STACK_LINES, message)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("  ...", id="a stack that is too deep"),
        pytest.param("  <no Python frame>", id="a thread outside Python"),
        pytest.param('  File "train.py", line ??? in main', id="an unknown line"),
        pytest.param("Thread 0x00007f1 [loader] (most recent call first):", id="a thread with a name"),
    ],
)
def test_rare_lines_of_stacks_are_found(line: str) -> None:
    assert re.search(STACK_LINES, line)


@pytest.mark.parametrize(
    "line",
    [
        "step 12: loss 0.31",
        "loading ...",
        "Traceback (most recent call last):",
        '  File "train.py", line 12, in main',
        "the line 4 in data.csv is not valid",
    ],
)
def test_other_lines_are_not(line: str) -> None:
    assert not re.search(STACK_LINES, line)
