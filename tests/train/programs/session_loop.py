"""A Ray Train script with `train.current()`: two workers sum step numbers, with a barrier in every step."""

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import ray
from ray.train import ScalingConfig, collective
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

from spotladder import train


def loop(config: dict[str, Any]) -> None:
    job = train.current()
    start = value = 0
    log = logging.getLogger("spotladder.checkpoints")
    log.setLevel(logging.INFO)
    log.addHandler(logging.FileHandler(Path(config["out"], "checkpoints.log")))
    with job.resume() as found:
        if found:
            value, start = int((found.path / "sum").read_text()), found.step
    with Path(config["out"], f"starts-{job.rank}").open("a") as starts:
        starts.write(f"{job.attempt} {start}\n")
    for step in job.steps(start, config["total"]):
        time.sleep(config["pause"])
        collective.barrier()
        value += step
        if step == config.get("bug_at"):
            raise KeyError("a bug of the program")
        if job.should_commit(step):
            with job.commit(step, {"sum": value}) as folder:
                (folder / "sum").write_text(str(value))
    Path(config["out"], f"result-{job.rank}").write_text(str(value))


if __name__ == "__main__":
    # The nodes were started without these variables.
    own = {name: value for name, value in os.environ.items() if name.startswith(("AWS_", "SPOTLADDER_CACHE"))}
    ray.init(log_to_driver=False, runtime_env={"env_vars": own})
    trainer = DataParallelTrainer(
        loop,
        train_loop_config=json.loads(sys.argv[1]),
        scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}),
        run_config=train.ray_run_config(),
    )
    trainer.fit()
