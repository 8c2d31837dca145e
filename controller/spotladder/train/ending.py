"""The exit code of a program that ends because of an error of its attempt, not of its own code."""

from __future__ import annotations

import sys
from types import TracebackType

from spotladder.checkpoints.store import RightsRefused
from spotladder.checkpoints.store_check import StoreUnsafe
from spotladder.core.contract import ExitCode
from spotladder.errors import Fenced, SpotladderError
from spotladder.train.interruption import Interrupted


def exit_code_of(error: BaseException | None) -> int | None:
    """The exit code for this error: 75 to 78 if it or an error inside it has one, the code of any other spotladder
    error, else None.

    Ray wraps the errors of its workers, so the causes of an error are searched too.
    """
    if isinstance(error, SpotladderError):
        return _of_store(error) or error.exit_code
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        inner = [error, getattr(error, "controller_failure", None), *getattr(error, "worker_failures", {}).values()]
        if any(isinstance(found, Fenced) for found in inner):
            return ExitCode.FENCED
        # Ray ends the run on a preemption only because the workers were interrupted (see RecoverInPlace).
        if any(isinstance(found, Interrupted) or type(found).__name__ == "PreemptionError" for found in inner):
            return ExitCode.INTERRUPTED
        if code := next(filter(None, map(_of_store, inner)), None):
            return code
        error = error.__cause__ or error.__context__
    return None


def _of_store(error: BaseException | None) -> ExitCode | None:
    """The exit code for an error of the store that no retry fixes."""
    if isinstance(error, RightsRefused):
        return ExitCode.ACCESS_DENIED
    return ExitCode.STORE_UNSAFE if isinstance(error, StoreUnsafe) else None


def exit_with_what_happened() -> None:
    """Install a hook: if one of these errors is uncaught, the process prints one line instead of a traceback and exits
    with its code.

    The program's own errors keep their traceback and exit code.
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
            ExitCode.STORE_UNSAFE: own or "the store cannot fence an attempt that was cut off",
        }
        sys.stderr.write(f"spotladder: {what.get(code, own)} (exit code {code})\n")
        raise SystemExit(code)

    hook._spotladder = True  # type: ignore[attr-defined]  # noqa: SLF001 – our own mark
    sys.excepthook = hook
