"""The exit code of a program that an error of the attempt, not of its own code, ends."""

from __future__ import annotations

import sys
from types import TracebackType

from spotladder.checkpoints.store import RightsRefused
from spotladder.core.contract import ExitCode
from spotladder.errors import Fenced, SpotladderError
from spotladder.train.interruption import Interrupted


def exit_code_of(error: BaseException | None) -> int | None:
    """75, 76 or 77 when that is what this error, or one inside it, means; the code of any other error of ours; else
    None.

    Ray wraps what its workers raised: those errors are looked through.
    """
    if isinstance(error, SpotladderError):
        return ExitCode.ACCESS_DENIED if isinstance(error, RightsRefused) else error.exit_code
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        inner = [error, getattr(error, "controller_failure", None), *getattr(error, "worker_failures", {}).values()]
        if any(isinstance(found, Fenced) for found in inner):
            return ExitCode.FENCED
        # Ray gives up on a preemption only because the workers were interrupted (see RecoverInPlace).
        if any(isinstance(found, Interrupted) or type(found).__name__ == "PreemptionError" for found in inner):
            return ExitCode.INTERRUPTED
        if any(isinstance(found, RightsRefused) for found in inner):
            return ExitCode.ACCESS_DENIED
        error = error.__cause__ or error.__context__
    return None


def exit_with_what_happened() -> None:
    """Make these errors, if uncaught, end this process with their exit code and one line instead of a traceback.

    Errors of the program itself are shown, and exit, as before.
    """
    before = sys.excepthook
    if getattr(before, "_spotladder", False):
        return

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        code = exit_code_of(error)
        if code is None:
            before(kind, error, trace)
            return
        own = error if isinstance(error, SpotladderError) else ""
        what: dict[int, object] = {
            ExitCode.INTERRUPTED: "interrupted: committed, to be resumed",
            ExitCode.FENCED: own or "replaced by a newer attempt",
            ExitCode.ACCESS_DENIED: own or "the store refuses this job's credentials",
        }
        sys.stderr.write(f"spotladder: {what.get(code, own)} (exit code {code})\n")
        raise SystemExit(code)

    hook._spotladder = True  # type: ignore[attr-defined]  # noqa: SLF001 – our own mark
    sys.excepthook = hook
