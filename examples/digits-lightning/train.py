"""Handwritten digits with PyTorch Lightning: the callback is the only line for spotladder."""

import os
import time

import lightning
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, random_split
from torchmetrics.functional.classification import multiclass_accuracy

from spotladder import train

EPOCHS, PACE = int(os.environ.get("EPOCHS", "10")), float(os.environ.get("PACE", "0"))  # seconds that each step waits


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))

    def training_step(self, batch, index):
        time.sleep(PACE)
        images, labels = batch
        loss = cross_entropy(self.net(images), labels)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        images, labels = batch
        self.log("accuracy", multiclass_accuracy(self.net(images), labels, 10, average="micro"), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    lightning.seed_everything(7)
    pixels, digits = load_digits(return_X_y=True)
    data = TensorDataset(torch.from_numpy(pixels / 16).float(), torch.from_numpy(digits))
    training, validation = random_split(data, [0.8, 0.2], generator=torch.Generator().manual_seed(7))
    trainer = lightning.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[train.lightning.callback()],
    )
    trainer.fit(Digits(), DataLoader(training, 32, shuffle=True), DataLoader(validation, 360))
    print(f"test accuracy {trainer.callback_metrics['accuracy']:.4f} after {trainer.global_step} steps")
