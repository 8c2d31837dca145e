"""Remarks for the user, beside the output of a command."""

from __future__ import annotations

import sys


def remark(text: str) -> None:
    """Write the text as a line to stderr."""
    sys.stderr.write(f"{text}\n")
