"""Runs one command of Terraform, and forwards its lines and the user's Ctrl-C.

Terraform runs in a separate process group, so that only this process forwards a terminal's Ctrl-C to it, once. On the
first interrupt Terraform finishes the running operations and writes its state; the second one kills it. A watchdog
kills Terraform and its providers when this process dies.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotladder.errors import EnvironmentFailure
from spotladder_infra.watchdog import watched

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command. `output` has both streams, or without standard output if `on_line` gets that."""

    code: int
    output: str
    errors: str
    interrupted: bool


def run(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    on_line: Callable[[str], None] | None = None,
    on_interrupt: Callable[[], None] | None = None,
) -> CommandResult:
    """Runs the command to its end.

    Args:
        command: Program and arguments.
        folder: Where it runs.
        environment: All of its environment.
        on_line: Gets each line of standard output as it is printed.
        on_interrupt: Called after the first interrupt was forwarded.

    Raises:
        EnvironmentFailure: The program cannot be started.
    """
    lines: list[str] = []
    errors: list[str] = []
    with watched() as marked, _handled(_Interrupts(on_interrupt)) as interrupts:
        process = _started(command, folder, {**environment, **marked.environment})
        interrupts.forward_to(process)
        stdout: Any = process.stdout
        stderr: Any = process.stderr
        reader = threading.Thread(target=lambda: errors.extend(stderr), daemon=True)
        reader.start()
        try:
            for line in stdout:
                (lines.append if on_line is None else on_line)(line)
        except BaseException:
            _stop(process, stdout)
            raise
        code = process.wait()
    # A process that the command has started may have kept its output open. The watchdog has killed it.
    reader.join()
    stdout.close()
    stderr.close()
    return CommandResult(code, "".join(lines), "".join(errors), interrupts.came > 0)


def _stop(process: subprocess.Popen[str], stdout: Any) -> None:
    """Interrupts the command and waits for its end. Its output is read meanwhile, so that it can write its state."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    for _ in stdout:
        pass
    process.wait()


def _started(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            list(command),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise EnvironmentFailure(f"{command[0]} does not start: {error.strerror or error}") from None


class _Interrupts:
    """The interrupts during a command. Those that came before it was started are forwarded when it is."""

    def __init__(self, on_interrupt: Callable[[], None] | None) -> None:
        self.came = 0
        self._forwarded = 0
        self._process: subprocess.Popen[str] | None = None
        self._on_interrupt = on_interrupt

    def __call__(self, _number: int, _frame: object) -> None:
        self.came += 1
        self._forward()

    def forward_to(self, process: subprocess.Popen[str]) -> None:
        """The command that gets the interrupts."""
        self._process = process
        self._forward()

    def _forward(self) -> None:
        process = self._process
        while process is not None and self._forwarded < self.came:
            self._forwarded += 1
            first = self._forwarded == 1
            with suppress(ProcessLookupError):
                if first:
                    process.send_signal(signal.SIGINT)
                else:
                    os.killpg(process.pid, signal.SIGKILL)
            if first and self._on_interrupt is not None:
                self._on_interrupt()


@contextmanager
def _handled(interrupts: _Interrupts) -> Iterator[_Interrupts]:
    """Handles the signals while the block runs. Only the main thread can do that."""
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts) for number in INTERRUPTS}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
