"""Scripts that know nothing of spotladder, under `spotladder.train.program`: they finish after kills at random steps,
and each kill costs at most the steps since the last save. And the checkpoints that the frameworks write."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spotladder.train.saved import saved_in
from tests.train.builders import log_of
from tests.train.program_site import Site

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(1800)]

TOTAL, EVERY = 30, 5

HELD = """
import time
from pathlib import Path


def held(step):
    while Path("hold").exists() and step >= int(Path("hold").read_text()):
        time.sleep(0.01)


"""
"""The test keeps the script at a step until it kills it."""

HUGGING_FACE = f"""
import torch
from transformers import BertConfig, BertForSequenceClassification, HfArgumentParser
from transformers import Trainer, TrainerCallback, TrainingArguments


class Hold(TrainerCallback):
    def on_train_begin(self, arguments, state, control, **more):
        print(f"starts at step {{state.global_step}};", flush=True)

    def on_step_end(self, arguments, state, control, **more):
        held(state.global_step)


class Words(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        words = torch.randint(0, 64, (8,), generator=torch.Generator().manual_seed(index))
        return {{"input_ids": words, "attention_mask": torch.ones_like(words), "labels": words.sum() % 2}}


(arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
size = {{"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}}
model = BertForSequenceClassification(BertConfig(vocab_size=64, max_position_embeddings=16, **size))
trainer = Trainer(model=model, args=arguments, train_dataset=Words(), callbacks=[Hold()])
trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)
assert trainer.state.global_step == {TOTAL}
"""

OPTIONS = (
    f"--output_dir out --use_cpu true --max_steps {TOTAL} --save_steps {EVERY} --save_total_limit 2 "
    "--disable_tqdm true --report_to none --resume_from_checkpoint {checkpoint}"
)

LIGHTNING = f"""
import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 1)

    def training_step(self, batch, index):
        return torch.nn.functional.mse_loss(self.net(batch[0]), batch[0].sum(1, keepdim=True))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


class Hold(lightning.Callback):
    def on_train_start(self, trainer, module):
        print(f"starts at step {{trainer.global_step}};", flush=True)

    def on_train_batch_end(self, trainer, *more):
        held(trainer.global_step)


data = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=8)
saves = lightning.pytorch.callbacks.ModelCheckpoint("out", every_n_train_steps={EVERY}, save_last=True)
trainer = lightning.Trainer(
    max_steps={TOTAL}, accelerator="cpu", logger=False, enable_progress_bar=False, callbacks=[Hold(), saves]
)
last = Path("out/last.ckpt")
trainer.fit(Model(), data, ckpt_path=last if last.exists() else None)
assert trainer.global_step == {TOTAL}
"""


@pytest.mark.parametrize(
    ("script", "options"), [(HUGGING_FACE, OPTIONS), (LIGHTNING, "")], ids=["huggingface", "lightning"]
)
def test_a_script_finishes_after_kills_at_random_steps(tmp_path: Path, script: str, options: str) -> None:
    site, chance = Site(tmp_path), random.Random(7)
    (tmp_path / "train.py").write_text(HELD + script)
    command = [sys.executable, "train.py", *options.split()]
    begins, attempt = 0, 0
    for step in sorted(chance.sample([step for step in range(EVERY + 1, TOTAL) if step % EVERY], 3)):
        attempt += 1
        (tmp_path / "hold").write_text(str(step))
        process = site.start(attempt, *command)
        saved = step - step % EVERY
        site.until_committed(saved)
        if chance.random() < 0.5:
            process.terminate()
        else:
            site.kill(process)
        said = site.end(process)[1]
        assert f"starts at step {begins};" in said
        begins = saved
        if chance.random() < 0.5:
            shutil.rmtree(tmp_path / "out")
    (tmp_path / "hold").unlink()
    code, said = site.end(site.start(attempt + 1, *command))
    assert code == 0, said
    assert f"starts at step {begins};" in said
    newest = log_of(tmp_path / "bucket").newest()
    assert newest is not None
    assert newest.step == TOTAL
    assert begins > 0


class TestMarks:
    """What the installed versions of the frameworks write is recognized."""

    def test_distributed_checkpoints_of_pytorch(self, tmp_path: Path) -> None:
        import torch.distributed.checkpoint as dcp

        dcp.save({"weight": torch.ones(4)}, checkpoint_id=tmp_path / "step-3", no_dist=True)
        (saved,) = saved_in(tmp_path)
        assert (saved.name, saved.step, saved.complete, saved.proven) == ("step-3", 3, True, True)

    def test_accelerate(self, tmp_path: Path) -> None:
        accelerator = pytest.importorskip("accelerate").Accelerator(cpu=True)
        model = accelerator.prepare(torch.nn.Linear(2, 1))
        accelerator.save_state(str(tmp_path / "checkpoint-6"))
        (saved,) = saved_in(tmp_path)
        assert (saved.name, saved.step, saved.complete) == ("checkpoint-6", 6, True)
        assert model is not None

    def test_a_file_of_torch_save(self, tmp_path: Path) -> None:
        torch.save({"weight": torch.ones(400)}, tmp_path / "epoch-4.pt")
        (saved,) = saved_in(tmp_path)
        assert (saved.step, saved.complete, saved.proven) == (4, True, True)
        whole = (tmp_path / "epoch-4.pt").read_bytes()
        (tmp_path / "epoch-4.pt").write_bytes(whole[: len(whole) // 2])
        assert not saved_in(tmp_path)[0].complete

    def test_keras(self, tmp_path: Path) -> None:
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
