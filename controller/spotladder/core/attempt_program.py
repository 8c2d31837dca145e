"""What every backend does with the program of an attempt."""

from __future__ import annotations

from spotladder.core.contract import Variable
from spotladder.core.model import Launch, Seconds

LAST_COMMIT_LIMIT: Seconds = 10.0
"""Maximum time for which a backend delays the report of a program's exit until it has read the commit log, so that the
last commit is known with the exit. If the log is unreachable, the exit is reported after this time."""


def launch_variables(action: Launch) -> dict[str, str]:
    """The environment variables of the attempt's program that depend on how it is launched."""
    standby = {Variable.STANDBY: "true"} if action.standby else {}
    hangs = {Variable.HANGS: str(action.hangs)} if action.hangs else {}
    return {**standby, **hangs}
