"""Runs programs of this machine. Imports nothing of the fleet, so that a provider's process starts fast."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from spotladder.errors import EnvironmentFailure

HOMES: Mapping[str, str] = {
    "pulumi": "https://www.pulumi.com/docs/install",
    "helm": "https://helm.sh/docs/intro/install",
    "kubectl": "https://kubernetes.io/docs/tasks/tools",
    "kind": "https://kind.sigs.k8s.io",
}
"""Where users get each program."""


class CommandFailure(EnvironmentFailure):
    """A command failed. `printed` is the end of its output; the message also has a remedy."""

    def __init__(self, printed: str, remedy: str = "") -> None:
        super().__init__(f"{printed}{remedy}")
        self.printed = printed


def require(*names: str) -> None:
    """Raises EnvironmentFailure when one of the programs is missing."""
    for name in names:
        if shutil.which(name) is None:
            raise _absent(name)


def run(
    command: Sequence[str], words: str, *, given: str | None = None, timeout: float, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, whatever its exit status.

    Args:
        command: One of the programs in HOMES, and its arguments.
        words: The beginning of the command, for the message.
        given: Its standard input.
        timeout: Seconds.
        environment: Variables in addition to those of this process.

    Raises:
        EnvironmentFailure: The program is missing, or does not start.
        CommandFailure: It has not ended in time.
    """
    try:
        return subprocess.run(
            command,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env={**os.environ, **environment},
        )
    except FileNotFoundError:
        raise _absent(command[0]) from None
    except OSError as error:
        problem = f"{command[0]} does not start ({error.strerror})"
        raise EnvironmentFailure(f"{problem}: reinstall it ({HOMES[command[0]]})") from None
    except subprocess.TimeoutExpired:
        raise CommandFailure(f"{words}: no answer in {timeout:g} s") from None


def error_line(text: str) -> str:
    """The last line that begins with "error", else the last one."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    wanted = [line for line in lines if line.lower().startswith("error")]
    return " ".join((wanted or lines or ["no message"])[-1].split())


def _absent(name: str) -> EnvironmentFailure:
    return EnvironmentFailure(f"{name} is not on the PATH: install it ({HOMES[name]})")
