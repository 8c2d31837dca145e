"""A Ray Tune sweep over handwritten digits: finished trials do not run again, the others resume from checkpoints."""

import os
import tempfile
import time
from pathlib import Path

import joblib
from ray import tune

from spotladder import train

EPOCHS = int(os.environ.get("EPOCHS", "30"))
PACE = float(os.environ.get("PACE", "0"))  # seconds to wait in each epoch, so that the demo runs until a node is lost


def trial(config: dict) -> None:
    """Train one network with the widths and the learning rate of `config`."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    pixels, labels = load_digits(return_X_y=True)
    pixels, test_pixels, labels, test_labels = train_test_split(pixels / 16, labels, test_size=0.2, random_state=0)
    network = MLPClassifier((config["width"],), learning_rate_init=config["rate"], random_state=7)
    begun = tune.get_checkpoint()  # the checkpoint of this trial, or None
    if begun:
        with begun.as_directory() as folder:
            network = joblib.load(Path(folder, "network"))
    for _ in range(getattr(network, "epochs", 0), EPOCHS):
        time.sleep(PACE)
        network.partial_fit(pixels, labels, classes=range(10))
        network.epochs = getattr(network, "epochs", 0) + 1
        with tempfile.TemporaryDirectory() as folder:
            joblib.dump(network, Path(folder, "network"))
            report = {"accuracy": network.score(test_pixels, test_labels), "epochs": network.epochs}
            tune.report(report, checkpoint=tune.Checkpoint.from_directory(folder))


if __name__ == "__main__":
    tuner = train.tune_restore(  # in place of tune.Tuner(
        trial,
        param_space={"width": tune.grid_search([16, 64, 256]), "rate": tune.grid_search([0.001, 0.003])},
        tune_config=tune.TuneConfig(metric="accuracy", mode="max"),
    )
    best = tuner.fit().get_best_result()
    print(f"best test accuracy {best.metrics['accuracy']:.4f} with {best.config}")
