"""Handwritten digits on two workers: PyTorch's all-reduce, in Ray Train, on capacity that may be lost at any time."""

import argparse
import time

from spotladder import train


def read_digits():
    """scikit-learn's bundled 1,797 images of 8 × 8 pixels: (images, labels) for training and for testing."""
    import torch
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    images = (digits.images / 16).astype("float32")[:, None]
    parts = train_test_split(images, digits.target, test_size=0.2, random_state=0, stratify=digits.target)
    return [torch.from_numpy(part) for part in parts]


def build():
    from torch import nn

    convolutions = [nn.Conv2d(1, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 64, 10))


def loop(config):
    begun, job, total = time.monotonic(), train.current(), config["steps"]
    import torch
    from ray.train.torch import get_device
    from torch.nn.functional import cross_entropy
    from torch.utils.data import DataLoader, TensorDataset

    device = get_device() if config["gpu"] else "cpu"
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(mode=True)
    images, test_images, labels, test_labels = read_digits()
    sampler = train.torch.Sampler(len(images), config["batch"], seed=7)
    batches = iter(DataLoader(TensorDataset(images, labels), batch_sampler=sampler))
    model = torch.nn.parallel.DistributedDataParallel(build().to(device))  # all-reduces in backward()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)

    state, start = train.torch.State(model=model, optimizer=optimizer, schedule=schedule, sampler=sampler), 0
    with job.resume() as found:  # the newest commit, or None at the first start
        if found:
            state.restore(found)
            start = found.step
    pause = config["pace"] * (time.monotonic() - begun)  # in proportion to the start, so losses come alike anywhere
    for step in job.steps(start, total):
        images, labels = (part.to(device) for part in next(batches))
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        time.sleep(pause)  # slows the demo down
        if job.should_commit(step):
            with job.commit(step, {"loss": loss.item()}) as folder:
                state.save(folder)
    if job.rank == 0:
        guesses = model.module.eval()(test_images.to(device)).argmax(1).cpu()
        print(f"test accuracy {(guesses == test_labels).double().mean():.4f} after {total} steps")


if __name__ == "__main__":
    from ray.train import ScalingConfig
    from ray.train.torch import TorchTrainer

    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {"steps": 500, "batch": 64, "workers": 2, "pace": 0.0, "gpu": 0}.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    options = parser.parse_args()
    scaling, run = ScalingConfig(num_workers=options.workers, use_gpu=bool(options.gpu)), train.ray_run_config()
    TorchTrainer(loop, train_loop_config=vars(options), scaling_config=scaling, run_config=run).fit()
