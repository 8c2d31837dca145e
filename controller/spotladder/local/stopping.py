"""Handles Ctrl-C, SIGTERM and a closed terminal for the whole life of a run."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType


class Stopping:
    """Forwards every signal to the run, even while its processes end and its report is written.

    Before the run starts, a signal has its default effect. After the run was asked to stop and has ended, signals are
    ignored until the process exits: an extra Ctrl-C must not change the exit code or interrupt the cleanup.
    """

    def __init__(self) -> None:
        self._asked = False
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Stopping:
        return self

    def hand_to(self, ask: Callable[[], None]) -> None:
        """Call `ask`, in a signal handler, at every signal from now on."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self._asked = True
            ask()

        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # With nohup, a closed terminal is no reason to stop.
            numbers.append(signal.SIGHUP)
        self._before = {number: signal.signal(number, handle) for number in numbers}

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self._asked else handler)
