"""DeepSpeed's engine in a loop of the user's own and under the Trainer of transformers: each rank saves its part of the
optimizer into the commit."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.absent import absent
from tests.frameworks.scripts import stop_and_continue, trainer
from tests.train.builders import log_of

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(1800)]

SCRIPT = """
import os

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch

from spotladder import train
from spotladder.core.contract import Notice

deepspeed.init_distributed("gloo")
job, total, start = train.current(), 20, 0
torch.manual_seed(7)
inputs = torch.randn(160, 8)
sampler = train.torch.Sampler(len(inputs), batch=8, seed=7)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1, bias=False))
config = {"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": STAGE}}
config["optimizer"] = {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}}
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
state = train.torch.State(sampler=sampler)
with job.resume() as found:
    if found:
        engine.load_checkpoint(found.merged())
        state.restore(found)
        start = found.step
batches = iter(sampler)
for step in job.steps(start, total):
    batch = inputs[next(batches)]
    loss = torch.nn.functional.mse_loss(engine(batch), batch.sum(1, keepdim=True))
    engine.backward(loss)
    engine.step()
    if step == INTERRUPTED and job.rank == 0:
        job._member.listener.hear(Notice())
    if job.should_commit(step):
        with job.commit(step, {"loss": loss.item()}) as folder:
            engine.save_checkpoint(folder)
            state.save(folder)
torch.distributed.destroy_process_group()
"""


CONFIG = """
import os

os.environ["DS_ACCELERATOR"] = "cpu"
config = {
    "train_micro_batch_size_per_gpu": "auto",
    "zero_optimization": {"stage": 1},
    "optimizer": {"type": "Adam", "params": {"lr": "auto", "torch_adam": True}},
}
"""


def own_loop(stage: int) -> str:
    return SCRIPT.replace("STAGE", str(stage))


@pytest.mark.parametrize(
    "text",
    [own_loop(1), own_loop(3), trainer("deepspeed=config", CONFIG)],
    ids=["a loop with ZeRO-1", "a loop with ZeRO-3", "transformers"],
)
def test_two_ranks_stop_at_a_notice_and_continue(text: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("deepspeed") is None:
        absent("deepspeed is not installed", "public")
    whole, lost = map(states, stop_and_continue(text, tmp_path))
    assert len(whole) >= 3, "the model, and the optimizer of each rank"
    assert whole.keys() == lost.keys()
    assert all(same(whole[name], lost[name]) for name in whole)


def states(folder: Path) -> dict[str, Any]:
    """The content of each file of DeepSpeed in the newest commit, by its name."""
    import torch

    commit = log_of(folder).newest()
    assert commit is not None
    files = (folder / "digits" / commit.path).rglob("*_states.pt")
    return {file.name: torch.load(file, weights_only=False) for file in files}


def same(one: Any, other: Any) -> bool:
    """Whether two saved states have the same tensors."""
    import torch

    if isinstance(one, torch.Tensor):
        return bool(torch.equal(one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return True
