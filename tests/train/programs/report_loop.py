"""A Ray Train script from Ray's own guide. Only the line with `ray_run_config` is added."""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
from ray.train import Checkpoint, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

from spotladder import train


def loop(config: dict[str, Any]) -> None:
    rank = ray.train.get_context().get_world_rank()
    start = value = 0
    checkpoint = ray.train.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            state = json.loads(Path(folder, "state.json").read_text())
            start, value = state["epoch"] + 1, state["sum"]
    with Path(config["out"], f"starts-{rank}").open("a") as starts:
        starts.write(f"{start} {value}\n")
    for epoch in range(start, config["epochs"]):
        time.sleep(config["pause"])
        value += epoch
        with tempfile.TemporaryDirectory() as folder:
            if rank == 0:
                Path(folder, "state.json").write_text(json.dumps({"epoch": epoch, "sum": value}))
                ray.train.report({"sum": value}, checkpoint=Checkpoint.from_directory(folder))
            else:
                ray.train.report({"sum": value})


if __name__ == "__main__":
    ray.init(log_to_driver=False)
    config = json.loads(sys.argv[1])
    trainer = DataParallelTrainer(
        loop,
        train_loop_config=config,
        scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}),
        run_config=train.ray_run_config(total=config["epochs"]),
    )
    result = trainer.fit()
    with result.checkpoint.as_directory() as folder:
        Path(config["out"], "result").write_text(Path(folder, "state.json").read_text())
