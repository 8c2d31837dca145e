"""The exceptions that end an attempt before its last step."""

from __future__ import annotations

from spotladder.core.contract import ExitCode
from spotladder.errors import EnvironmentFailure

RESIZED = "resized"
"""A name among the leaving nodes that is not a node: the worker group restarts at another size."""


class Interrupted(SystemExit):
    """The attempt's capacity is being reclaimed: `step` is committed and the process must exit with code 75.

    A `SystemExit`: a plain script exits with the right code, `with` and `finally` blocks run, and an `except
    Exception` of the program does not catch it.
    """

    def __init__(self, step: int) -> None:
        super().__init__(ExitCode.INTERRUPTED)
        self.step = step

    def __str__(self) -> str:
        return f"interrupted after step {self.step}, which is committed; exit code {ExitCode.INTERRUPTED}"

    def __reduce__(self) -> tuple[type[Interrupted], tuple[int]]:
        return (Interrupted, (self.step,))


class HandedOver(Interrupted):
    """Everything up to `step` is committed, and the program continues inside the attempt without the Ray nodes
    `leaving`, or with more workers (`RESIZED`). If nothing restarts the program, it is an ordinary interruption."""

    def __init__(self, step: int, leaving: tuple[str, ...] = ()) -> None:
        super().__init__(step)
        self.leaving = leaving

    def __str__(self) -> str:
        nodes = len(set(self.leaving) - {RESIZED})
        what = f"{nodes} nodes go" if nodes else "the number of workers changes"
        return f"handed over after step {self.step}, which is committed: {what}"

    def __reduce__(self) -> tuple[type[HandedOver], tuple[int, tuple[str, ...]]]:  # type: ignore[override]
        return (HandedOver, (self.step, self.leaving))


def interrupted(step: int, leaving: tuple[str, ...]) -> Interrupted:
    """What ends the training function after its last commit: an interruption, or a handover if nodes are leaving."""
    return HandedOver(step, leaving) if leaving else Interrupted(step)


class RankLost(EnvironmentFailure):
    """Another rank of this job is lost or does not answer. The job resumes from the last commit when all workers are
    ready."""
