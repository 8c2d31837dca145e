"""Ray Data, the guide to batch inference: predictions for all rows, from files into files."""

import json
import os
from pathlib import Path

import pandas as pd
import ray
from ray.data.checkpoint import CheckpointConfig

bucket = f"{os.environ['SPOTLADDER_URI']}/{os.environ['SPOTLADDER_JOB']}"  # changed
checkpoints = CheckpointConfig("id", f"{bucket}/ray-data", delete_checkpoint_on_success=False)
ray.data.DataContext.get_current().checkpoint_config = checkpoints  # changed


class Predictor:
    def __call__(self, batch):
        batch["prediction"] = batch["id"] ** 2
        print("step", len(batch["id"]), flush=True)
        return batch


inputs = Path("in").absolute()
inputs.mkdir()
for number in range(36):
    pd.DataFrame({"id": range(8 * number, 8 * number + 8)}).to_parquet(inputs / f"{number}.parquet")
data = ray.data.read_parquet(str(inputs), override_num_blocks=36).map_batches(Predictor, batch_size=8, concurrency=1)
data.write_parquet(f"{bucket}/out")
written = ray.data.read_parquet(f"{bucket}/out").take_all()  # a row that is written twice is here twice
Path("final").write_text(json.dumps(sorted([int(row["id"]), int(row["prediction"])] for row in written)))
