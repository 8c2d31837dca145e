"""The random state of Python and NumPy, which programs of every framework use."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from spotladder.errors import CheckpointCorrupt


def save(path: Path) -> None:
    """Write the states of the global generators as JSON. NumPy's is included only if the program has loaded NumPy."""
    version, words, gauss = random.getstate()
    state: dict[str, Any] = {"python": [version, list(words), gauss]}
    if numpy := sys.modules.get("numpy"):
        kind, keys, position, has_gauss, cached = numpy.random.get_state()
        state["numpy"] = [kind, keys.tolist(), int(position), int(has_gauss), float(cached)]
    path.write_text(json.dumps(state), encoding="utf-8")


def restore(path: Path) -> None:
    """Restore the states of the generators that `save` wrote. Raises CheckpointCorrupt."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        version, words, gauss = state["python"]
        random.setstate((version, tuple(words), gauss))
        if "numpy" in state:
            import numpy as np

            kind, keys, position, has_gauss, cached = state["numpy"]
            np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise CheckpointCorrupt(f"{path.name}: not a saved random state: {error}") from None
