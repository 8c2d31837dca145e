"""Ray Tune, tune_basic_example.py and its guide to checkpoints: a grid of trials, each of which can resume."""

import json
import tempfile
from pathlib import Path

from ray import tune

from spotladder import train


def objective(config):
    done, value = 0, 0.0
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as folder:
            done, value = json.loads(Path(folder, "state").read_text())
    for step in range(done + 1, 10):
        value += config["width"] / (step + config["height"])
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "state").write_text(json.dumps([step, value]))
            tune.report({"value": value, "steps": step}, checkpoint=tune.Checkpoint.from_directory(folder))
        print("step", step, value, flush=True)


if __name__ == "__main__":
    space = {"width": tune.grid_search([1, 2]), "height": tune.grid_search([1.5, 2.5])}
    config = tune.TuneConfig(metric="value", mode="max", max_concurrent_trials=2)
    results = train.tune_restore(objective, param_space=space, tune_config=config).fit()  # changed
    ends = sorted([each.config["width"], each.config["height"], each.metrics["value"]] for each in results)
    Path("final").write_text(json.dumps(ends))
