"""Handwritten digits on two or three workers: as many as there are. The model does not depend on how many."""

import argparse
import time

from spotladder import train


def read_digits():
    """scikit-learn's bundled 1,797 images of 8 × 8 pixels: (images, labels) for training and for testing."""
    import torch
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    pixels, labels = load_digits(return_X_y=True)
    parts = train_test_split(pixels / 16, labels, test_size=0.2, random_state=0, stratify=labels)
    return [torch.from_numpy(part) for part in parts]


def order(step, size, batch):
    """The examples of a step: each epoch has its own order, which is a function of `step` and needs no storage."""
    import numpy as np

    epoch, position = divmod(step - 1, size // batch)
    return np.random.default_rng((7, epoch)).permutation(size)[position * batch :][:batch]


def loop(config):
    import torch
    from torch import distributed, nn
    from torch.nn.functional import cross_entropy

    job, total, batch = train.current(), config["steps"], config["batch"]
    torch.manual_seed(7)
    torch.set_num_threads(1)
    images, test_images, labels, test_labels = read_digits()
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    state, start = train.torch.State(model=model, optimizer=optimizer), 0
    with job.resume() as found:  # the newest commit, of any number of workers
        if found:
            state.restore(found)
            start = found.step
    for step in job.steps(start, total):
        begun = time.monotonic()
        mine = order(step, len(images), batch)[
            job.share_of(batch)
        ]  # the batch stays the same for any number of workers
        optimizer.zero_grad()
        loss = cross_entropy(model(images[mine]), labels[mine], reduction="sum") / batch
        loss.backward()
        for parameter in model.parameters():
            distributed.all_reduce(parameter.grad)  # the sum over all examples of the batch
        optimizer.step()
        time.sleep(max(0, begun + config["pace"] - time.monotonic()))  # slows the demo down
        if job.should_commit(step):
            with job.commit(step, {"loss": loss.item() * job.world_size}, replicated=True) as folder:
                state.save(folder)
    if job.rank == 0:
        accuracy = (model(test_images).argmax(1) == test_labels).double().mean()
        print(f"test accuracy {accuracy:.4f} after {total} steps with {job.world_size} workers at the end")


if __name__ == "__main__":
    from ray.train.torch import TorchTrainer

    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {"steps": 300, "batch": 96, "workers": 2, "pace": 0.0}.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    options = parser.parse_args()
    scaling, run = train.ray_scaling_config(options.workers), train.ray_run_config()
    TorchTrainer(loop, train_loop_config=vars(options), scaling_config=scaling, run_config=run).fit()
