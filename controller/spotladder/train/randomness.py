"""The random state of a rank: the global generators of Python, and of NumPy and PyTorch if the program has loaded them.

A rank writes its own into the commit. A rank that the commit does not have continues with that of rank 0.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spotladder.errors import CheckpointCorrupt


def save(folder: Path, rank: int) -> None:
    """Write the state of this rank as JSON. PyTorch's has the generator of the current GPU, if the program uses one."""
    states = {name: get() for name, (get, _) in _generators().items()}
    text = json.dumps(states, default=lambda array: array.tolist())
    _file(folder, rank).write_text(text, encoding="utf-8")


def rank_in(folder: Path, rank: int) -> int:
    """The rank whose state this rank restores: its own, or 0 if the commit has none of it."""
    return rank if _file(folder, rank).exists() else 0


def restore(folder: Path, rank: int) -> None:
    """Restore the states that `save` wrote. Raises CheckpointCorrupt."""
    path = _file(folder, rank_in(folder, rank))
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        version, words, gauss = state["python"]
        random.setstate((version, tuple(words), gauss))
        if "numpy" in state:
            import numpy as np

            kind, keys, *rest = state["numpy"]
            np.random.set_state((kind, np.array(keys, dtype=np.uint32), *rest))
        if "torch" in state:
            import torch

            torch.set_rng_state(torch.tensor(state["torch"], dtype=torch.uint8, device="cpu"))
            if "cuda" in state and torch.cuda.is_available():
                torch.cuda.set_rng_state(torch.tensor(state["cuda"], dtype=torch.uint8, device="cpu"))
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointCorrupt(f"{path.name}: not a saved random state: {error}") from None


def _generators() -> dict[str, tuple[Callable[[], Any], Callable[[Any], None]]]:
    """The functions that return and set the state of each generator."""
    found: dict[str, Any] = {"python": (random.getstate, random.setstate)}
    if numpy := sys.modules.get("numpy"):
        found["numpy"] = (numpy.random.get_state, numpy.random.set_state)
    if torch := sys.modules.get("torch"):
        found["torch"] = (torch.get_rng_state, torch.set_rng_state)
        if torch.cuda.is_initialized():
            found["cuda"] = (torch.cuda.get_rng_state, torch.cuda.set_rng_state)
    return found


def _file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.random.json"


def keep() -> Callable[[], None]:
    """Keep the state of the generators of Python, NumPy and PyTorch (of its current GPU, too). Returns the function
    that returns to it, any number of times."""
    states = [(put, get()) for get, put in _generators().values()]

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
