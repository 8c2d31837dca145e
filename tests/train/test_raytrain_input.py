"""Invalid arguments of `ray_run_config` and their errors. Ray is not started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

V1_TRAINER = """
from ray.train.data_parallel_trainer import DataParallelTrainer
from spotladder import train

config = train.ray_run_config()
train.ray_run_config()
DataParallelTrainer(lambda: None, run_config=config)
"""
V1_SAID = (
    "ray_run_config: ray.train.data_parallel_trainer.DataParallelTrainer is a trainer of Ray "
    "Train V1, but ray_run_config needs V2: import the trainer from ray.train.torch, ray.train.tensorflow or "
    "ray.train.v2.api.data_parallel_trainer"
)
V1_SWITCH = """
import os
os.environ["RAY_TRAIN_V2_ENABLED"] = "0"
from spotladder import train

train.ray_run_config()
"""
SWITCH_SAID = (
    "spotladder.errors.InvalidSpec: ray_run_config: Ray Train V1 is enabled by RAY_TRAIN_V2_ENABLED=0, but "
    "ray_run_config needs V2: set RAY_TRAIN_V2_ENABLED=1, before ray is imported"
)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param(V1_TRAINER, V1_SAID, id="a trainer of Ray Train V1"),
        pytest.param(V1_SWITCH, SWITCH_SAID, id="Ray Train V1 switched on"),
    ],
)
def test_invalid_arguments_are_rejected(tmp_path: Path, script: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode in (1, 2)
    assert said in done.stderr.strip().splitlines()[-1]
