"""For tests of your own training program: interrupt it at a step and compare the results.

    from spotladder.train.testing import interrupt_at

    def test_an_interruption_changes_nothing(tmp_path):
        expected = interrupt_at(main, step=[])  # no interruption
        assert interrupt_at(main, step=30) == expected  # with a notice: commits, stops, resumes
        assert interrupt_at(main, step=[7, 30], notice=False) == expected  # without: repeats the steps since the commit

For programs of one process: `interrupt_at` calls the program repeatedly in this process, each time as the next
attempt.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

from spotladder.core.contract import ExitCode, Notice, Variable
from spotladder.train import environment, session
from spotladder.train.membership import Member, join
from spotladder.train.ranks import ProcessRank

Result = TypeVar("Result")


class MachineLost(BaseException):
    """Simulates a SIGKILL: the program cannot catch it as an `Exception`; only `finally` blocks run."""


def interrupt_at(
    program: Callable[[], Result],
    *,
    step: int | Sequence[int],
    notice: bool = True,
    interval: str = "10steps",
    folder: Path | str | None = None,
) -> Result:
    """Run `program`, interrupt it at each of these steps and restart it until it is done. Returns its last result.

    With `notice`, the program gets a notice before the step, so it commits and stops, with `Interrupted` or an exit
    code 75 of its own; without, it ends at that step as if it were killed. `interval` is its commit interval. `folder`
    keeps the checkpoints for inspection; by default they are deleted. Raises AssertionError if the program does not
    reach a step or ignores a notice, and every error of the program.
    """
    steps = [step] if isinstance(step, int) else list(step)
    if folder is not None:
        return _run(program, steps, notice, interval, Path(folder))
    with tempfile.TemporaryDirectory(prefix="spotladder-rehearsal-") as temporary:
        return _run(program, steps, notice, interval, Path(temporary))


def _run(program: Callable[[], Result], steps: list[int], notice: bool, interval: str, folder: Path) -> Result:
    for attempt, step in enumerate(steps, start=1):
        with _attempt(attempt, interval, folder) as member:
            job = _Interrupted(member, step, notice)
            session.adopt(job)
            try:
                program()
            except MachineLost:
                continue
            except SystemExit as end:  # `Interrupted`, or a program that exits by itself.
                if end.code != ExitCode.INTERRUPTED:
                    raise
                if not job.heard_at:
                    raise AssertionError(
                        f"the program exited with code 75 before step {step}, without a notice"
                    ) from end
                continue
            if job.heard_at:
                raise AssertionError(
                    f"the program ignored the notice at step {job.heard_at} and ran to its end, but the node would be "
                    "gone: commit when should_commit returns True, and iterate over job.steps, or exit with code 75 "
                    "when job.stopping is true"
                )
            raise AssertionError(f"the program ended without a call of should_commit({step}) or any later step")
    with _attempt(len(steps) + 1, interval, folder) as member:
        session.adopt(session.Job(member))
        return program()


class _Interrupted(session.Job):
    """A rank whose machine is lost at a step."""

    def __init__(self, member: Member, step: int, notice: bool) -> None:
        super().__init__(member)
        self._lost_at = step
        self._with_notice = notice
        self.heard_at = 0

    def should_commit(self, step: int) -> bool:
        if step >= self._lost_at:
            if not self._with_notice:
                raise MachineLost
            self.heard_at = self.heard_at or step
            self._member.listener.hear(Notice())
        return super().should_commit(step)


@contextmanager
def _attempt(number: int, interval: str, folder: Path) -> Iterator[Member]:
    """Run this process as rank 0 of one attempt; restores its environment afterwards."""
    settings = {
        Variable.JOB: "rehearsal",
        Variable.URI: str(folder),
        Variable.ATTEMPT: str(number),
        Variable.INTERVAL: interval,
    }
    with patch.dict(os.environ, settings), ExitStack() as after:
        member = join(environment.read(), ProcessRank())
        after.callback(session.forget)
        after.callback(member.close)
        after.callback(member.commits.wait)  # also after an error: the folder may be removed next
        yield member
