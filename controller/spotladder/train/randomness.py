"""The random state of Python and NumPy, which programs of every framework use, and of PyTorch while a program runs."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def keep() -> Callable[[], None]:
    """Keep the state of the generators of Python, NumPy and PyTorch (of its current GPU, too). Returns the function
    that returns to it, any number of times."""
    states: list[tuple[Callable[[Any], Any], Any]] = [(random.setstate, random.getstate())]
    if numpy := sys.modules.get("numpy"):
        states.append((numpy.random.set_state, numpy.random.get_state()))
    if torch := sys.modules.get("torch"):
        states.append((torch.set_rng_state, torch.get_rng_state()))
        if torch.cuda.is_initialized():
            states.append((torch.cuda.set_rng_state, torch.cuda.get_rng_state()))

    def restore() -> None:
        for put, state in states:
            put(state)

    return restore


@contextmanager
def kept() -> Iterator[None]:
    """Return to the present random state at the end of the block."""
    restore = keep()
    try:
        yield
    finally:
        restore()
