"""`python -m spotladder.train.program`: a program that keeps its own checkpoints, interrupted in every way."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spotladder.atomic import write_text
from spotladder.core.contract import Notice
from spotladder.core.reasons import Reason
from spotladder.train.program import with_checkpoint
from tests.train.builders import log_of
from tests.train.program_site import PROGRAM, Site, children
from tests.waiting import until


@pytest.mark.parametrize(
    ("command", "without", "with_one"),
    [
        (["python", "t.py"], ["python", "t.py"], ["python", "t.py"]),
        (["t", "--resume", "{checkpoint}", "-v"], ["t", "-v"], ["t", "--resume", "/o ut/c", "-v"]),
        (["t", "ckpt_path={checkpoint}", "x"], ["t", "x"], ["t", "ckpt_path=/o ut/c", "x"]),
        (["t", "--resume={checkpoint}"], ["t"], ["t", "--resume=/o ut/c"]),
        (["t", "run", "{checkpoint}"], ["t", "run"], ["t", "run", "/o ut/c"]),
        (["sh", "-c", "cd x && t --resume {checkpoint}; echo"], ["sh", "-c", "cd x && t ; echo"],
         ["sh", "-c", "cd x && t --resume '/o ut/c'; echo"]),
        (["sh", "-c", 't --resume "{checkpoint}" -v'], ["sh", "-c", "t  -v"], None),
        (["sh", "-c", "(t a={checkpoint})"], ["sh", "-c", "(t )"], ["sh", "-c", "(t a='/o ut/c')"]),
    ],
)  # fmt: skip
def test_the_checkpoint_in_the_arguments(command: list[str], without: list[str], with_one: list[str] | None) -> None:
    assert with_checkpoint(command, None) == without
    if with_one is not None:
        assert with_checkpoint(command, "/o ut/c") == with_one


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    for process in made.processes:
        made.kill(process)


def test_a_program_survives_a_signal_and_the_loss_of_its_machine(site: Site) -> None:
    first = site.train(1, "--hold", "10")
    site.until_committed(10)
    first.terminate()
    code, said = site.end(first)
    assert (code, "begins after step 0" in said) == (75, True)
    second = site.train(2, "--hold", "20")
    site.until_committed(20)
    site.kill(second)
    assert "begins after step 10" in site.end(second)[1]
    shutil.rmtree(site.folder / "out")
    code, said = site.end(site.train(3))
    assert (code, "begins after step 20" in said) == (0, True)
    assert (site.steps()[-1], (site.folder / "out" / "step-30.pt").exists()) == (30, True)


def test_a_notice_becomes_a_signal_and_what_the_program_saves_then_is_committed(site: Site) -> None:
    notice = site.folder / "notice"
    process = site.train(1, "--hold", "5", "--save-at-sigterm", notice=notice)
    site.until_committed(5)
    write_text(notice, Notice.of(Reason.EVICTION_NOTICE, 2e9).encode())
    assert site.end(process)[0] == 75
    assert site.steps()[-1] == 6


def test_a_shell_that_ends_first_does_not_cut_off_its_program(site: Site) -> None:
    script = f"true && '{sys.executable}' '{PROGRAM}' --hold 5 --save-at-sigterm; exit 0"
    process = site.start(1, "sh", "-c", script)
    site.until_committed(5)
    process.terminate()
    assert site.end(process)[0] == 75
    assert site.steps()[-1] == 6


def test_a_second_signal_kills_the_program(site: Site) -> None:
    process = site.train(1, "--hold", "5", "--ignore-sigterm")
    site.until_committed(5)
    process.terminate()
    until(lambda: "SIGTERM" in (process.stdout.readline() if process.stdout else ""))
    process.send_signal(signal.SIGINT)
    assert site.end(process)[0] == 75


def test_a_program_that_does_not_stop_is_killed_within_the_grace_period(site: Site) -> None:
    process = site.train(1, "--hold", "5", "--ignore-sigterm", grace="1s")
    site.until_committed(5)
    process.terminate()
    assert site.end(process)[0] == 75
    assert site.steps()[-1] == 5


@pytest.mark.parametrize(("hold", "code"), [("0", 0), ("7", 75)])
def test_after_a_notice_only_the_last_step_is_evidence_of_the_end(site: Site, hold: str, code: int) -> None:
    process = site.train(1, "--trainer", "--total", "10", "--hold", hold)
    site.until_committed(int(hold) or 10)
    process.terminate()
    assert site.end(process)[0] == code


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("exit 0", 0), ("exit 75", 75), ("kill -9 $$", 137)])
def test_other_ends_are_passed_on(site: Site, script: str, code: int) -> None:
    ended, said = site.end(site.start(1, "sh", "-c", script))
    assert ended == code
    assert ("no complete checkpoint was found" in said) is (code == 0)


def test_a_command_that_does_not_exist_is_named(site: Site) -> None:
    code, said = site.end(site.start(1, "no-such-command-1"))
    assert (code, "no-such-command-1" in said) == (127, True)


def test_a_newer_attempt_ends_the_program(site: Site) -> None:
    process = site.train(1, "--hold", "5")
    site.until_committed(5)
    (program,) = children(process.pid)
    log_of(site.folder / "bucket").start(2)
    (site.folder / "out" / "step-5.pt").rename(site.folder / "out" / "step-9.pt")
    code, said = site.end(process)
    assert (code, "attempt 2" in said) == (76, True)
    until(lambda: not Path(f"/proc/{program}").exists())


def test_a_program_with_the_library_is_told_to_choose(site: Site) -> None:
    code, said = site.end(site.start(1, sys.executable, "-c", "from spotladder import train; train.current()"))
    assert (code, "spec.checkpoints.programFolder: the checkpoints in" in said) == (2, True)


def test_all_ranks_continue_from_the_same_commit_and_one_commits(site: Site) -> None:
    site.end(site.train(1, "--total", "5"))
    shutil.rmtree(site.folder / "out")
    script = f"cd \"$PLACE\" && '{sys.executable}' '{PROGRAM}' --resume {{checkpoint}} --total 8"
    processes = []
    for rank in range(2):
        place = site.folder / f"machine-{rank}"
        place.mkdir()
        world: dict[str, Any] = {"rank": rank, "world_size": 2, "place": place}
        processes.append(site.start(2, "sh", "-c", script, folder=str(place / "out"), **world))
    ends = [site.end(process) for process in processes]
    assert [(code, "begins after step 5" in said) for code, said in ends] == [(0, True), (0, True)]
    assert "committed" not in ends[1][1]
    assert site.steps()[-1] == 8


def test_the_heartbeat_shows_the_step(site: Site) -> None:
    heartbeat = site.folder / "heartbeat"
    process = site.train(1, "--trainer", "--total", "10", "--hold", "7", heartbeat=heartbeat)

    def shown() -> Callable[[], bool]:
        return lambda: heartbeat.exists() and json.loads(heartbeat.read_text()).get("step") == 7

    until(shown())
    assert json.loads(heartbeat.read_text())["total"] == 10
    process.terminate()
    assert site.end(process)[0] == 75
