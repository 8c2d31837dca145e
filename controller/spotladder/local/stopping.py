"""Ctrl-C, SIGTERM and a closed terminal, from the first moment of a run to the last of its process."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType


class Stopping:
    """Hands every signal to what runs, also while it is taken down and its report is written.

    Until there is something that runs, a signal ends the process as it always does: nothing was begun. Once it was
    asked to stop, signals are ignored to the end of the process: a Ctrl-C too many must not change the exit code, nor
    interrupt the taking down.
    """

    def __init__(self) -> None:
        self._asked = False
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Stopping:
        return self

    def hand_to(self, ask: Callable[[], None]) -> None:
        """From now on `ask` is called, in a signal handler."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self._asked = True
            ask()

        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup: the closed terminal is no reason to stop
            numbers.append(signal.SIGHUP)
        self._before = {number: signal.signal(number, handle) for number in numbers}

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self._asked else handler)
