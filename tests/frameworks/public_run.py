"""`python -m tests.frameworks.public_run NAME`, in a folder of its own: kills a public example ten times, gives it two
notices, and compares its weights with those of an uninterrupted run."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from spotladder.train.testing import interrupt_at
from tests.frameworks.scripts import program

EXAMPLES = Path(__file__).parent / "public"
KILLS, TOTAL = 10, 36
"""Each example makes 36 steps: three epochs of 12 batches."""


def weights(variables: dict[str, Any]) -> list[bytes]:
    model = variables["model"]
    if hasattr(model, "get_weights"):
        return [array.tobytes() for array in model.get_weights()]
    return [tensor.detach().numpy().tobytes() for tensor in model.state_dict().values()]


def main(name: str) -> None:
    run = program((EXAMPLES / f"{name}.py").read_text(), weights)
    uninterrupted = interrupt_at(run, step=[])
    killed = sorted(random.Random(name).sample(range(1, TOTAL), KILLS))
    assert interrupt_at(run, step=killed, notice=False, interval="3steps") == uninterrupted, killed
    noticed = sorted(random.Random(name).sample(range(1, TOTAL), 2))
    assert interrupt_at(run, step=noticed) == uninterrupted, noticed


if __name__ == "__main__":
    main(sys.argv[1])
