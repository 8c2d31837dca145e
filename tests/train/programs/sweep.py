"""A Ray Tune sweep: each trial counts up to its own number and records that it ran."""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
from ray import tune

from spotladder import train


def trial(config: dict[str, Any]) -> None:
    start = 0
    checkpoint = tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            start = int(Path(folder, "done").read_text())
    with Path(config["out"], f"ran-{config['x']}").open("a") as runs:
        runs.write(f"{start}\n")
    for done in range(start + 1, config["steps"] + 1):
        time.sleep(config["pause"])
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "done").write_text(str(done))
            tune.report({"score": config["x"] * done}, checkpoint=tune.Checkpoint.from_directory(folder))


if __name__ == "__main__":
    ray.init(log_to_driver=False)
    config = json.loads(sys.argv[1])
    tuner = train.tune_restore(trial, param_space={**config, "x": tune.grid_search([1, 2, 3, 4, 5])})
    results = tuner.fit()
    scores = sorted(result.metrics["score"] for result in results)
    Path(config["out"], "result").write_text(json.dumps(scores))
