"""PyTorch alone, Lightning, transformers and torchrun: the scripts of the documentation end with the weights of an
uninterrupted run, wherever they are interrupted."""

from __future__ import annotations

import logging
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.errors import InvalidSpec
from spotladder.train.rayhuggingface import save_at_notices
from spotladder.train.testing import interrupt_at
from tests.frameworks.public_run import EXAMPLES
from tests.frameworks.scripts import program, run_two_ranks, script
from tests.train.builders import log_of

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(1800)]

LIGHTNING, HUGGINGFACE, TORCHRUN = "train.lightning.callback()", "train.huggingface.callback()", "init_process_group("
QUIET = {"accelerator=": "enable_progress_bar=False, enable_model_summary=False, logger=False, accelerator="}

NOTICE = "from spotladder.core.contract import Notice; train.current()._member.listener.hear(Notice())"
"""Gives this rank an eviction notice."""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def weights(variables: dict[str, Any]) -> list[Any]:
    return [parameter.detach().clone() for parameter in variables["model"].parameters()]


def same(one: list[Any], other: list[Any]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def random_steps(seed: int, total: int) -> list[int]:
    return sorted(random.Random(seed).sample(range(1, total), 3))


def test_pytorch_alone() -> None:
    main = program(script("CosineAnnealingLR(", page="training-script.md"), weights)
    uninterrupted = interrupt_at(main, step=[])
    for notice in (True, False):
        assert same(interrupt_at(main, step=random_steps(3, 40), notice=notice, interval="7steps"), uninterrupted)


class TestLightning:
    TOTAL = 40  # 4 epochs of 10 batches

    def test_weights_are_bit_identical(self) -> None:
        main = program(script(LIGHTNING, QUIET), weights)
        uninterrupted = interrupt_at(main, step=[])
        for seed in (1, 2):
            assert same(interrupt_at(main, step=random_steps(seed, self.TOTAL), notice=seed == 1), uninterrupted)

    def test_validations_and_hooks_are_part_of_their_step(self) -> None:
        """With a learning rate that follows the validations, a hook of the module that changes weights, random numbers
        in the validations, and averaged weights at the end."""
        end = "        return torch.optim.Adam(self.parameters(), lr=0.01)\n"
        more = (
            "        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)\n"
            "        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=9)\n"
            "        return [optimizer], [{'scheduler': plateau, 'monitor': 'valid'}]\n\n"
            "    def on_train_batch_end(self, outputs, batch, index):\n        self.net[3].bias.data.mul_(0.9)\n\n"
            "    def validation_step(self, batch, index):\n"
            "        self.log('valid', self.training_step(batch, index) + torch.rand(()))\n"
        )
        callbacks = "lightning.pytorch.callbacks.WeightAveraging(), train.lightning.callback()"
        changes = {
            end: more,
            "fit(model, data)": "fit(model, data, DataLoader(data.dataset, 16))",
            "train.lightning.callback()": callbacks,
        }
        for interval in ("", "val_check_interval=0.5, "):
            main = program(script(LIGHTNING, {**QUIET, **changes, "max_epochs": f"{interval}max_epochs"}), weights)
            assert same(interrupt_at(main, step=[5, 6, 9, 10, 11, 20, 30, 39]), interrupt_at(main, step=[]))

    def test_a_finished_training_stays_finished(self, tmp_path: Path) -> None:
        callbacks = "lightning.pytorch.callbacks.WeightAveraging(), train.lightning.callback()"
        main = program(script(LIGHTNING, {**QUIET, "train.lightning.callback()": callbacks}), weights)
        uninterrupted = interrupt_at(main, step=[], folder=tmp_path)
        assert same(interrupt_at(main, step=[], folder=tmp_path), uninterrupted)

    def test_loader_processes_accumulated_gradients_and_hyperparameters_of_any_type(self) -> None:
        changes = {
            "super().__init__()\n": "super().__init__()\n        self.save_hyperparameters({'kind': torch.nn.ReLU})\n",
            "shuffle=True": "shuffle=True, num_workers=1",
            "max_epochs=4": "max_steps=8, accumulate_grad_batches=2",
        }
        main = program(script(LIGHTNING, {**QUIET, **changes}), weights)
        assert same(interrupt_at(main, step=3), interrupt_at(main, step=[]))

    def test_an_unknown_number_of_steps_is_rejected(self) -> None:
        with pytest.raises(InvalidSpec, match="Trainer: the number of steps is unknown: set max_steps"):
            interrupt_at(program(script(LIGHTNING, {**QUIET, "max_epochs=4": "max_epochs=-1"}), weights), step=[])

    def test_two_ranks_stop_at_a_notice_and_continue(self, tmp_path: Path) -> None:
        changes = {
            **QUIET,
            "max_epochs=4": 'max_epochs=2, devices=2, strategy="ddp"',
            "        inputs, targets = batch\n": (
                "        inputs, targets = batch\n"
                "        if self.trainer.global_step == 3 and self.trainer.global_rank == 0 and INTERRUPTED:\n"
                f"            {NOTICE}\n"
            ),
        }
        text = script(LIGHTNING, changes)
        uninterrupted = text.replace("INTERRUPTED", "False")
        assert run_two_ranks(uninterrupted, tmp_path / "whole") == 0
        assert run_two_ranks(text.replace("INTERRUPTED", "True"), tmp_path / "lost") == 75
        (stopped,) = steps(tmp_path / "lost")
        assert 3 < stopped < 10
        assert run_two_ranks(uninterrupted, tmp_path / "lost", attempt=2) == 0
        whole, resumed = (saved(tmp_path / folder, "lightning.ckpt")["state_dict"] for folder in ("whole", "lost"))
        assert same(list(whole.values()), list(resumed.values()))


class TestHuggingFace:
    TOTAL = 48  # 4 epochs of 12 batches

    def test_weights_are_bit_identical(self, tmp_path: Path) -> None:
        main = program(script(HUGGINGFACE, {"use_cpu=True": "use_cpu=True, disable_tqdm=True"}), weights)
        uninterrupted = interrupt_at(main, step=[])
        assert list(tmp_path.glob("out/checkpoint-*")) == []
        for seed in (1, 2):
            steps_lost = [*random_steps(seed, self.TOTAL), self.TOTAL - 1]
            assert same(interrupt_at(main, step=steps_lost, notice=seed == 1), uninterrupted)

    @pytest.mark.parametrize("kind", ["epoch", "steps"])
    def test_evaluations_do_not_change_the_random_state(self, kind: str) -> None:
        changes = {
            "use_cpu=True": f"use_cpu=True, disable_tqdm=True, eval_strategy='{kind}', eval_steps=6",
            "train_dataset=Words()": "train_dataset=Words(), eval_dataset=Words()",
        }
        main = program(script(HUGGINGFACE, changes), weights)
        assert same(interrupt_at(main, step=[11, 12, 13, 36]), interrupt_at(main, step=[]))

    def test_its_own_checkpoints_stay(self, tmp_path: Path) -> None:
        changes = {'save_strategy="no"': "save_steps=10, enable_jit_checkpoint=True, disable_tqdm=True, max_steps=20"}
        interrupt_at(program(script(HUGGINGFACE, changes), weights), step=15)
        assert {folder.name for folder in tmp_path.glob("out/checkpoint-*")} == {"checkpoint-10", "checkpoint-20"}

    def test_a_script_that_does_not_resume_is_rejected(self) -> None:
        changes = {
            "resume_from_checkpoint=train.huggingface.checkpoint()": "",
            "use_cpu=True": "use_cpu=True, max_steps=9",
        }
        with pytest.raises(
            InvalidSpec, match=r"starts after step 0, but the newest commit is of step 5: call trainer\."
        ):
            interrupt_at(program(script(HUGGINGFACE, changes), weights), step=5)

    def test_a_worker_of_ray_train_restores_weights_that_the_trainer_has_renamed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from transformers import trainer

        for place, name in ((trainer, "get_last_checkpoint"), (trainer.Trainer, "_load_from_checkpoint")):
            monkeypatch.setattr(place, name, getattr(place, name))
        monkeypatch.setattr(trainer, "DEFAULT_CALLBACKS", [*trainer.DEFAULT_CALLBACKS])
        job: Any = SimpleNamespace(saves_now=lambda step: False, world_size=1)
        save_at_notices(job, SimpleNamespace())  # type: ignore[arg-type]
        text = (EXAMPLES / "hf_run_image_classification.py").read_text()
        text = text.replace(", callbacks=[train.huggingface.callback()]", "").replace("use_cpu", "max_steps=2, use_cpu")
        resumed = "train.huggingface.checkpoint()"
        saved = program(text.replace(resumed, "None"), weights)()
        found = program(text.replace("set_seed(7)", "set_seed(8)").replace(resumed, "'out/checkpoint-2'"), weights)()
        assert same(found, saved)

    def test_checkpoints_without_an_optimizer_are_rejected(self) -> None:
        changes = {'save_strategy="no"': "save_only_model=True, max_steps=9"}
        with pytest.raises(InvalidSpec, match="save_only_model"):
            interrupt_at(program(script(HUGGINGFACE, changes), weights), step=5)


class TestTorchrun:
    def test_two_ranks_stop_at_a_notice_and_continue(self, tmp_path: Path) -> None:
        text = script(TORCHRUN)
        lost = text.replace(
            "    optimizer.step()\n", f"    optimizer.step()\n    if step == 13 and job.rank == 0:\n        {NOTICE}\n"
        )
        assert run_two_ranks(text, tmp_path / "whole") == 0
        assert run_two_ranks(lost, tmp_path / "lost") == 75
        (stopped,) = steps(tmp_path / "lost")
        assert 13 <= stopped < 40
        assert run_two_ranks(text, tmp_path / "lost", attempt=2) == 0
        whole, resumed = (saved(tmp_path / folder, "state.pt")["model"] for folder in ("whole", "lost"))
        assert same(list(whole.values()), list(resumed.values()))

    def test_an_error_of_the_program_stays_torchruns_own(self, tmp_path: Path) -> None:
        (tmp_path / "broken.py").write_text("raise SystemExit(3)")
        command = [sys.executable, "-m", "spotladder.train.torchrun", "broken.py"]
        done = subprocess.run(command, cwd=tmp_path, timeout=300, capture_output=True, text=True, check=False)
        assert (done.returncode, "ChildFailedError" in done.stderr) == (1, True)


def steps(folder: Path) -> list[int]:
    return [commit.step for commit in log_of(folder).commits()]


def saved(folder: Path, name: str) -> Any:
    """This file of the newest commit."""
    commit = log_of(folder).newest()
    assert commit is not None
    (file,) = (folder / "digits" / commit.path).rglob(name)
    return torch.load(file, weights_only=False)
