"""Ray Train, the example with XGBoost: boosted trees on two workers, each with its share of the rows."""

from pathlib import Path

import numpy as np
import ray.train
import xgboost
from ray.train import ScalingConfig
from ray.train.xgboost import RayTrainReportCallback, XGBoostTrainer

from spotladder import train


class Progress(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        if ray.train.get_context().get_world_rank() == 0:
            print("step", epoch + 1, evals_log["train"]["rmse"][-1], flush=True)


def train_func(config):
    context = ray.train.get_context()
    values = np.random.default_rng(1).normal(size=(96, 4))[context.get_world_rank() :: context.get_world_size()]
    data = xgboost.DMatrix(values, label=values.sum(1))
    checkpoint = ray.train.get_checkpoint()
    model = RayTrainReportCallback.get_model(checkpoint) if checkpoint else None
    done = model.num_boosted_rounds() if model else 0
    xgboost.train(
        config, data, num_boost_round=36 - done, evals=[(data, "train")], xgb_model=model, verbose_eval=False,
        callbacks=[RayTrainReportCallback(frequency=3), Progress()],
    )  # fmt: skip


if __name__ == "__main__":
    trainer = XGBoostTrainer(
        train_func, train_loop_config={"max_depth": 3, "eta": 0.3}, scaling_config=ScalingConfig(num_workers=2),
        run_config=train.ray_run_config(),  # changed
    )  # fmt: skip
    Path("final").write_bytes(RayTrainReportCallback.get_model(trainer.fit().checkpoint).save_raw())
