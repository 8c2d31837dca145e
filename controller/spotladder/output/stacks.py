"""The lines of the stacks that a hanging program writes (`train.hangs`), as `faulthandler` prints them.

The process that prints the output of Ray's workers drops a line that another worker has printed in the last five
seconds. The ranks of a program hang at the same place, so most lines of their stacks are equal: without these variables
only the stack of one rank would be complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

STACKS_FOLLOW = "the stacks of its threads follow"
"""The end of the line that a rank logs before its stacks."""

STACK_LINES = (
    r"\(most recent call first\):$"
    r'|^\s*(File ".*", line (\d+|\?\?\?) in |<no Python frame>|<invalid frame>|\.\.\.$)'
    rf"|{STACKS_FOLLOW}"
)
"""A regular expression that finds each of these lines. The lines of a traceback have a comma after the line number."""

WITH_ALL_STACKS: Mapping[str, str] = MappingProxyType({"RAY_DEDUP_LOGS_ALLOW_REGEX": STACK_LINES})
"""The environment in which Ray prints each of these lines, even if another worker has printed it."""
