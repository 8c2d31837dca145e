"""Windows of availability in JSON, as in the 12-variant benchmark:
`{"metadata": {"gap_seconds": 600}, "data": [0, 0, 1]}`, where 1 means preempted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from spotladder.api.trace import read_document, trace_of
from spotladder.sim.trace import Trace, of_ticks


def read(path: Path) -> Trace:
    """The window. The zone is the name of the file. Raises InvalidSpec, located at the file."""
    return parse(read_document(path), path)


def parse(document: Any, path: Path) -> Trace:
    """The window in a parsed file; `path` is the file. Raises InvalidSpec with the file."""
    found = trace_of(document, path)
    return of_ticks(path.stem, ~np.array(found.taken, dtype=np.bool_), found.gap, str(path))
