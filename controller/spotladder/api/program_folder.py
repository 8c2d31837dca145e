"""The command of a program whose folder of checkpoints is committed for it (`checkpoints.programFolder`)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

_START = """\
import sys
try:
    from spotladder.train.program import main
except ModuleNotFoundError as error:
    sys.exit(f"checkpoints.programFolder: {error} in the image of the program: add RUN pip install spotladder to it")
sys.exit(main())"""


def started(command: Sequence[str], folder: str, python: str = "python3") -> list[str]:
    """The command that starts this command and commits what it saves in the folder."""
    return [python, "-c", _START, folder, "--", *command]


def started_script(script: str, folder: str | None, python: str = "python3") -> str:
    """The same for the script of a shell; without a folder, the script itself."""
    return script if folder is None else shlex.join(started(["/bin/sh", "-c", script], folder, python))
