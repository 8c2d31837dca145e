"""What the frameworks on PyTorch write into a program's own folder is recognized as checkpoints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spotladder.train.saved import saved_in
from tests.frameworks.scripts import program, script

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(1800)]


def test_distributed_checkpoints_of_pytorch(tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp

    dcp.save({"weight": torch.ones(4)}, checkpoint_id=tmp_path / "step-3", no_dist=True)
    (saved,) = saved_in(tmp_path)
    assert (saved.name, saved.step, saved.complete, saved.proven) == ("step-3", 3, True, True)


def test_accelerate(tmp_path: Path) -> None:
    accelerator = pytest.importorskip("accelerate").Accelerator(cpu=True)
    model = accelerator.prepare(torch.nn.Linear(2, 1))
    accelerator.save_state(str(tmp_path / "checkpoint-6"))
    (saved,) = saved_in(tmp_path)
    assert (saved.name, saved.step, saved.complete) == ("checkpoint-6", 6, True)
    assert model is not None


def test_a_file_of_torch_save(tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(400)}, tmp_path / "epoch-4.pt")
    (saved,) = saved_in(tmp_path)
    assert (saved.step, saved.complete, saved.proven) == (4, True, True)
    whole = (tmp_path / "epoch-4.pt").read_bytes()
    (tmp_path / "epoch-4.pt").write_bytes(whole[: len(whole) // 2])
    assert not saved_in(tmp_path)[0].complete


def test_keras(tmp_path: Path) -> None:
    script = (
        "import keras\n"
        "model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])\n"
        "model.save('model.03-0.25.keras')\n"
        "model.save_weights('model-05.weights.h5')\n"
    )
    environ = {**os.environ, "KERAS_BACKEND": "torch"}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environ, check=True, timeout=900)
    found = {saved.name: (saved.step, saved.complete, saved.proven) for saved in saved_in(tmp_path)}
    assert found == {"model.03-0.25.keras": (3, True, True), "model-05.weights.h5": (5, True, False)}


def test_the_trainer_of_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    changes = {
        'save_strategy="no"': "save_steps=3, max_steps=6, disable_tqdm=True",
        ", callbacks=[train.huggingface.callback()]": "",
        "resume_from_checkpoint=train.huggingface.checkpoint()": "",
    }
    program(script("train.huggingface.callback()", changes), dict)()
    found = [(saved.name, saved.step, saved.total, saved.complete) for saved in saved_in(tmp_path)]
    assert found == [("out/checkpoint-3", 3, 6, True), ("out/checkpoint-6", 6, 6, True)]


def test_lightning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saves = 'lightning.pytorch.callbacks.ModelCheckpoint("out", every_n_train_steps=3, save_last=True)'
    changes = {
        "max_epochs=4": "max_steps=5, logger=False, enable_progress_bar=False",
        "train.lightning.callback()": saves,
    }
    program(script("train.lightning.callback()", changes), dict)()
    (saved,) = saved_in(tmp_path)
    assert (saved.step, saved.complete, saved.proven) == (3, True, True)
    assert "out/last.ckpt" in saved.roots, "its name has no step"
