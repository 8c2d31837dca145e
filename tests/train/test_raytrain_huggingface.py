"""transformers' Trainer in Ray Train, as in docs/ray.md: two ranks that share the folder of the Trainer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from spotladder.core.contract import Notice
from spotladder.core.reasons import Reason
from tests.docs.markdown import blocks
from tests.train.builders import log_of
from tests.train.machine import RayMachines
from tests.waiting import until

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytestmark = [pytest.mark.ray, pytest.mark.frameworks, pytest.mark.timeout(900)]

MODEL = """
import time
import torch
from transformers import BertConfig, BertForSequenceClassification


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        time.sleep(0.01)
        words = torch.randint(0, 64, (8,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": words, "attention_mask": torch.ones_like(words), "labels": words.sum() % 2}


def my_data():
    return Slow()


def my_model():
    size = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
    return BertForSequenceClassification(BertConfig(vocab_size=64, max_position_embeddings=16, **size))
"""

STEPS = 200

START_LIMIT = 300.0
"""Seconds: each process of a worker imports PyTorch and transformers."""


def program(folder: Path) -> Path:
    """The program of the documentation with a small model, which never saves by itself before its end."""
    (text,) = [block.text for block in blocks("python") if "RayTrainReportCallback()" in block.text]
    changes = {"max_steps=2000": f"max_steps={STEPS}", "total=2000": f"total={STEPS}", "use_gpu=True": "use_gpu=False"}
    changes |= {"save_total_limit=2": "save_total_limit=2, use_cpu=True", '"out"': repr(str(folder / "out"))}
    for shown, tested in changes.items():
        assert shown in text
        text = text.replace(shown, tested)
    file = folder / "train_huggingface.py"
    file.write_text(MODEL + text)
    return file


def steps(folder: Path) -> list[int]:
    return [commit.step for commit in log_of(folder).read().commits]


def test_an_unmodified_script_saves_at_the_notice_and_resumes(machine: RayMachines, tmp_path: Path) -> None:
    notice = tmp_path / "notice"
    notice.write_text(Notice.of_commit(Reason.EVICTION_NOTICE, time.time() + 3600).encode())
    script = str(program(tmp_path).with_suffix(""))
    driver = machine.driver(script, tmp_path, {}, notice=notice, OMP_NUM_THREADS=1)
    until(lambda: steps(tmp_path) != [], START_LIMIT)
    assert driver.poll() is None, "the training continues"
    notice.write_text(Notice.of(Reason.EVICTION_NOTICE, time.time() + 3600).encode())
    assert driver.wait(START_LIMIT) == 75
    first, second = steps(tmp_path)
    assert 0 < first < second < STEPS
    assert (tmp_path / "out" / f"checkpoint-{first}").exists()
    log = log_of(tmp_path)
    newest = log.newest()
    assert newest is not None
    log.verify(newest)
    assert {"checkpoint/rng_state_0.pth", "checkpoint/rng_state_1.pth"} <= {file.name for file in newest.files}
    assert machine.driver(script, tmp_path, {}, attempt=2, OMP_NUM_THREADS=1).wait(START_LIMIT) == 0
    assert steps(tmp_path)[-1] == STEPS
