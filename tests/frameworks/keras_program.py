"""`python -m tests.frameworks.keras_program`, with KERAS_BACKEND: the script of docs/trainers.md ends with the weights
of an uninterrupted run, wherever it is interrupted."""

from __future__ import annotations

import os
import random
import tempfile
from typing import Any

from spotladder.train.testing import interrupt_at
from tests.frameworks.scripts import program, script

QUIET = {"epochs=4": "verbose=0, epochs=4"}
STREAM = {
    "model.fit(inputs, inputs.sum(1), batch_size=16": (
        "from tensorflow.data import Dataset\n"
        "data = Dataset.from_tensor_slices((inputs, inputs.sum(1))).shuffle(160, seed=3).batch(16).prefetch(2)\n"
        "model.fit(data"
    )
}
WITHIN_EPOCHS = [3, 17, 39]
ENDS_OF_EPOCHS = [9, 10, 20]


def weights(variables: dict[str, Any]) -> list[bytes]:
    return [array.tobytes() for array in variables["model"].get_weights()]


def main() -> None:
    backend = os.environ["KERAS_BACKEND"]
    run = program(script("train.keras.callback()", QUIET), weights)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = interrupt_at(run, step=[], folder=folder)
        assert interrupt_at(run, step=[], folder=folder) == uninterrupted, "a finished training stays finished"
    killed = [1, *sorted(random.Random(1).sample(range(2, 40), 2))]
    assert interrupt_at(run, step=killed, notice=False, interval="7steps") == uninterrupted, killed
    assert interrupt_at(run, step=WITHIN_EPOCHS) == uninterrupted
    if backend == "tensorflow":
        stream = program(script("train.keras.callback()", {**QUIET, **STREAM}), weights)
        assert interrupt_at(stream, step=[17, 39]) == interrupt_at(stream, step=[])
    else:
        assert interrupt_at(run, step=ENDS_OF_EPOCHS) == uninterrupted


if __name__ == "__main__":
    main()
