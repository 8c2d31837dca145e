"""The command line. Each command lives in its own module and is imported only when it is used."""

from __future__ import annotations

import os
import sys
from types import TracebackType


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Ctrl-C may come while modules are still read, before `main` can catch it: it is as quiet as later ones."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(130)
    sys.__excepthook__(kind, error, trace)


sys.excepthook = _end
