"""Keras with TensorFlow: an interrupted `fit` ends with the weights of an uninterrupted one, and what is rejected. The
tests of PyTorch and JAX run the same program with these."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from spotladder.errors import CheckpointCorrupt, InvalidSpec
from spotladder.train.testing import interrupt_at
from tests.docs.markdown import ROOT
from tests.frameworks.scripts import program, script


def run_with(backend: str) -> None:
    """Run the program of Keras with this backend."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.frameworks.keras_program"],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"},
        timeout=900,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_weights_are_bit_identical() -> None:
    run_with("tensorflow")


def changed(shown: str, tested: str) -> None:
    interrupt_at(program(script("train.keras.callback()", {shown: tested}), lambda _: None), step=[])


def test_what_cannot_be_resumed_is_rejected() -> None:
    with pytest.raises(InvalidSpec, match="fit: the number of steps of an epoch is unknown: pass steps_per_epoch"):
        changed(
            "model.fit(inputs, inputs.sum(1), batch_size=16", "model.fit(((inputs, inputs.sum(1)) for _ in range(9))"
        )
    with pytest.raises(InvalidSpec, match=r"model: is not built yet, so nothing could be restored: call its build\(\)"):
        changed("keras.Input((8,)), ", "")


def test_another_model_than_that_of_the_commit_is_rejected() -> None:
    text = script("train.keras.callback()", {"epochs=4": "epochs=4, verbose=0"})

    def main() -> None:
        from spotladder import train

        width = 16 if train.current().attempt == 1 else 17
        program(text.replace("Dense(16", f"Dense({width}"), lambda _: None)()

    with pytest.raises(CheckpointCorrupt, match=r"variables\.npz: the model has other variables"):
        interrupt_at(main, step=5)
