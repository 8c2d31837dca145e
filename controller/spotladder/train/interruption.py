"""How an attempt ends before its last step."""

from __future__ import annotations

from spotladder.core.contract import ExitCode
from spotladder.errors import EnvironmentFailure


class Interrupted(SystemExit):
    """The capacity is going: everything up to `step` is committed, the process is to exit with code 75.

    A `SystemExit`, so that a plain script ends with the right code by itself, `with` blocks and `finally` are left in
    order, and an `except Exception` of the program does not swallow it.
    """

    def __init__(self, step: int) -> None:
        super().__init__(ExitCode.INTERRUPTED)
        self.step = step

    def __str__(self) -> str:
        return f"interrupted after step {self.step}, which is committed; exit code {ExitCode.INTERRUPTED}"

    def __reduce__(self) -> tuple[type[Interrupted], tuple[int]]:
        return (Interrupted, (self.step,))


class RankLost(EnvironmentFailure):
    """Another rank of this job is gone or does not answer. The job goes on from the last commit when it is whole."""
