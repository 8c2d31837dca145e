"""Exit codes of a program of an attempt; part of the contract in `core.contract`."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of a program that did not fail by its own fault. Any other code but 0 is the program's failure."""

    INTERRUPTED = 75  # EX_TEMPFAIL: the program committed and stopped, to be resumed
    FENCED = 76  # a newer attempt owns the commit log
    ACCESS_DENIED = 77  # EX_NOPERM: the checkpoint store refuses the credentials
    STORE_UNSAFE = 78  # EX_CONFIG: the checkpoint store cannot fence an attempt that was cut off
