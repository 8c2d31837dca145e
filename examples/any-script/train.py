"""Handwritten digits with NumPy alone: no framework, no Ray, one process. `python train.py` runs it anywhere."""

import json
import os
import time

import numpy as np
from sklearn.datasets import load_digits

from spotladder import train

STEPS, BATCH, RATE = int(os.environ.get("STEPS", "2000")), 64, 0.05
PACE = float(os.environ.get("PACE", "0"))  # seconds to wait in each step, so that the demo runs until a node is lost


def main() -> float:
    """Train the model. Returns the accuracy on the 20 % of the images that are held out."""
    job = train.current()
    pixels, digits = load_digits(return_X_y=True)
    test = np.arange(len(pixels)) % 5 == 0
    pixels, wanted = pixels / 16, np.eye(10)[digits]
    random = np.random.default_rng(7)
    weights, speed, start = np.zeros((64, 10)), np.zeros((64, 10)), 0

    with job.resume() as found:  # the newest commit, or None at the first start
        if found:
            saved = np.load(found.path / "model.npz")
            weights, speed, start = saved["weights"], saved["speed"], found.step
            random.bit_generator.state = json.loads((found.path / "random.json").read_text())
    for step in job.steps(start, STEPS):
        time.sleep(PACE)
        batch = random.choice(np.flatnonzero(~test), BATCH)
        scores = np.exp(pixels[batch] @ weights)
        guesses = scores / scores.sum(axis=1, keepdims=True)
        speed = 0.9 * speed + pixels[batch].T @ (wanted[batch] - guesses) / BATCH
        weights = weights + RATE * speed
        if job.should_commit(step):
            loss = -np.log(guesses[wanted[batch] == 1]).mean()
            with job.commit(step, {"loss": float(loss)}) as folder:
                np.savez(folder / "model.npz", weights=weights, speed=speed)
                (folder / "random.json").write_text(json.dumps(random.bit_generator.state))
    return float(((pixels[test] @ weights).argmax(axis=1) == digits[test]).mean())


if __name__ == "__main__":
    print(f"test accuracy {main():.4f} after {STEPS} steps")
