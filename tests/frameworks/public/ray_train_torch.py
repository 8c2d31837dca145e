"""Ray Train, train_fashion_mnist_example.py and its guide to fault tolerance: a net on two workers."""

import tempfile
from pathlib import Path

import ray.train
import torch
from ray.train import Checkpoint, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from torch.utils.data import DataLoader, TensorDataset

from spotladder import train


def train_func(config):
    torch.manual_seed(7)
    pictures = torch.rand(48, 64, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(pictures, torch.arange(48) % 3)
    loader = prepare_data_loader(DataLoader(data, 8, shuffle=True))
    model = prepare_model(torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)))
    optimizer = torch.optim.SGD(model.parameters(), config["lr"], momentum=0.9)
    start = 0
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            saved = torch.load(Path(folder, "model.pt"))
        start = saved["epoch"]
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    rank = ray.train.get_context().get_world_rank()
    for epoch in range(start, 12):
        loader.sampler.set_epoch(epoch)
        for index, (batch, classes) in enumerate(loader):
            loss = torch.nn.functional.cross_entropy(model(batch), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0 and index < 2:
                print("step", 3 * epoch + index + 1, loss.item(), flush=True)
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if rank == 0:
                saved = {"epoch": epoch + 1, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(saved, Path(folder, "model.pt"))
                checkpoint = Checkpoint.from_directory(folder)
            ray.train.report({"loss": loss.item()}, checkpoint=checkpoint)
        if rank == 0:
            print("step", 3 * epoch + 3, loss.item(), flush=True)


if __name__ == "__main__":
    trainer = TorchTrainer(
        train_func, train_loop_config={"lr": 0.1}, scaling_config=ScalingConfig(num_workers=2),
        run_config=train.ray_run_config(),  # changed
    )  # fmt: skip
    with trainer.fit().checkpoint.as_directory() as folder:
        torch.save(torch.load(Path(folder, "model.pt")), "final")
