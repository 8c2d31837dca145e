"""The state of a Keras model with any backend: its variables, and the seed of the generators of its data."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from spotladder.errors import CheckpointCorrupt

FILE = "variables.npz"


def variables_of(model: Any) -> list[Any]:
    """Everything but metrics, which Keras resets at the start of an epoch."""
    metrics = {id(variable) for variable in model.metrics_variables}
    own = [variable for variable in model.variables if id(variable) not in metrics]
    known = {id(variable) for variable in own}
    return own + [variable for variable in model.optimizer.variables if id(variable) not in known]


def save_variables(model: Any, folder: Path, seed: int) -> None:
    """Write the variables of the model and its optimizer, and the seed of the epochs."""
    import numpy as np
    from keras.ops import convert_to_numpy

    named = {str(number): convert_to_numpy(variable) for number, variable in enumerate(variables_of(model))}
    np.savez(folder / FILE, seed=seed, **named)


def restore_variables(model: Any, folder: Path) -> int:
    """Restore what `save_variables` wrote. Returns the seed of the epochs. Raises CheckpointCorrupt."""
    import numpy as np

    variables = variables_of(model)
    with np.load(folder / FILE) as saved:
        arrays = [saved[str(number)] for number in range(len(saved.files) - 1)]
        if [array.shape for array in arrays] != [tuple(variable.shape) for variable in variables]:
            raise CheckpointCorrupt(f"{FILE}: the model has other variables: was it changed since the commit?")
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)
        return int(saved["seed"])


def seed_generators(seed: int) -> None:
    """Seed the generators that Keras and its data adapters use."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed % 2**32)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)
