"""The command line. Each command has its own module, which is imported only when the command runs."""

from __future__ import annotations

import os
import sys
from types import TracebackType


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Exit without a traceback on Ctrl-C, even while modules are imported and `main` cannot catch it yet."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(130)
    sys.__excepthook__(kind, error, trace)


sys.excepthook = _end
