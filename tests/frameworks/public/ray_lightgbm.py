"""Ray Train, the example with LightGBM: boosted trees on two workers, each with its share of the rows."""

import json
from pathlib import Path

import lightgbm
import numpy as np
import ray.train
from ray.train import ScalingConfig
from ray.train.lightgbm import LightGBMTrainer, RayTrainReportCallback, get_network_params

from spotladder import train


def progress(env):
    if ray.train.get_context().get_world_rank() == 0:
        print("step", env.iteration + 1, env.evaluation_result_list, flush=True)


def train_func(config):
    context = ray.train.get_context()
    values = np.random.default_rng(1).normal(size=(96, 4))[context.get_world_rank() :: context.get_world_size()]
    data = lightgbm.Dataset(values, label=values.sum(1))
    checkpoint = ray.train.get_checkpoint()
    model = RayTrainReportCallback.get_model(checkpoint) if checkpoint else None
    done = model.num_trees() if model else 0
    lightgbm.train(
        {**config, **get_network_params()}, data, num_boost_round=36 - done, init_model=model,
        valid_sets=[data], callbacks=[RayTrainReportCallback(frequency=3), progress],
    )  # fmt: skip


if __name__ == "__main__":
    config = {"num_leaves": 7, "min_data_in_leaf": 2, "tree_learner": "data", "pre_partition": True, "verbose": -1}
    trainer = LightGBMTrainer(
        train_func, train_loop_config=config, scaling_config=ScalingConfig(num_workers=2),
        run_config=train.ray_run_config(),  # changed
    )  # fmt: skip
    trees = RayTrainReportCallback.get_model(trainer.fit().checkpoint).dump_model()["tree_info"]
    Path("final").write_text(json.dumps(trees))  # a model's file also has the number of rounds of its last training
