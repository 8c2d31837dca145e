"""pytorch/examples, imagenet/main.py: pictures, with DistributedDataParallel and a checkpoint after each epoch."""

import argparse
import shutil
from pathlib import Path

import torch
from torch.distributed import destroy_process_group, get_rank, init_process_group
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--resume")
args = parser.parse_args()

init_process_group("gloo")
torch.manual_seed(7)
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3)
)  # fmt: skip
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4)
start, best = 0, float("inf")
if args.resume:
    checkpoint = torch.load(args.resume)
    start, best = checkpoint["epoch"], checkpoint["best"]
    model.load_state_dict(checkpoint["state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    schedule.load_state_dict(checkpoint["scheduler"])
pictures = torch.rand(48, 1, 8, 8, generator=torch.Generator().manual_seed(1))
data = TensorDataset(pictures, torch.arange(48) % 3)
sampler = DistributedSampler(data)
for epoch in range(start, 12):
    sampler.set_epoch(epoch)
    total = 0.0
    for index, (batch, classes) in enumerate(DataLoader(data, 8, sampler=sampler)):
        loss = torch.nn.functional.cross_entropy(model(batch), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if get_rank() == 0 and index < 2:
            print("step", 3 * epoch + index + 1, loss.item(), flush=True)
    schedule.step()
    if get_rank() == 0:
        Path("out").mkdir(exist_ok=True)
        content = {
            "epoch": epoch + 1, "best": min(total, best), "state_dict": model.state_dict(),
            "optimizer": optimizer.state_dict(), "scheduler": schedule.state_dict(),
        }  # fmt: skip
        torch.save(content, "out/checkpoint.pth.tar")
        if total < best:
            shutil.copyfile("out/checkpoint.pth.tar", "out/model_best.pth.tar")
        best = content["best"]
        print("step", 3 * epoch + 3, loss.item(), flush=True)
if get_rank() == 0:
    torch.save(model.state_dict(), "final")
destroy_process_group()
