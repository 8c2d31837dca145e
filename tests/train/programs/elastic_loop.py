"""A Ray Train script of an elastic job: each step sums its examples over all ranks, however many there are."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import ray
from ray.train import collective
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

from spotladder import train

BATCH = 7


def loop(config: dict[str, Any]) -> None:
    job = train.current()
    start = value = 0
    with job.resume() as found:
        if found:
            value, start = int((found.path / "sum").read_text()), found.step
    with Path(config["out"], f"starts-{job.rank}").open("a") as starts:
        starts.write(f"{job.world_size} {start}\n")
    for step in job.steps(start, config["total"]):
        time.sleep(config["pause"])
        mine = sum(step * BATCH + position for position in job.share_of(BATCH))
        with Path(config["out"], f"shares-{job.rank}").open("a") as shares:
            shares.write(f"{step} {job.world_size} {mine}\n")
        collective.barrier()
        value += sum(step * BATCH + position for position in range(BATCH))
        if job.should_commit(step):
            with job.commit(step, {"sum": value}) as folder:
                (folder / "sum").write_text(str(value))
    Path(config["out"], f"result-{job.rank}").write_text(str(value))


if __name__ == "__main__":
    # The nodes were started without these variables.
    own = {name: value for name, value in os.environ.items() if name.startswith("SPOTLADDER_CACHE")}
    ray.init(log_to_driver=False, runtime_env={"env_vars": own})
    trainer = DataParallelTrainer(
        loop,
        train_loop_config=json.loads(sys.argv[1]),
        scaling_config=train.ray_scaling_config(resources_per_worker={"CPU": 1}),
        run_config=train.ray_run_config(),
    )
    trainer.fit()
