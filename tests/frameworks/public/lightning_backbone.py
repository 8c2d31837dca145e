"""Lightning, examples/pytorch/basics/backbone_image_classifier.py: pictures, augmented at random, averaged weights."""

import lightning
import torch
from lightning.pytorch.callbacks import WeightAveraging
from torch import nn
from torch.utils.data import DataLoader, Dataset

from spotladder import train


class Pictures(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        picture = torch.rand(1, 8, 8, generator=torch.Generator().manual_seed(index))
        return picture.flip(2) if torch.rand(()) < 0.5 else picture, index % 3


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1))
        self.head = nn.Linear(144, 3)

    def training_step(self, batch, index):
        pictures, classes = batch
        return nn.functional.cross_entropy(self.head(self.backbone(pictures)), classes)

    def validation_step(self, batch, index):
        self.log("valid", self.training_step(batch, index))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


lightning.seed_everything(7)
model = Classifier()
callbacks = [train.lightning.callback(), WeightAveraging()]  # changed
trainer = lightning.Trainer(
    max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, callbacks=callbacks
)  # fmt: skip
trainer.fit(model, DataLoader(Pictures(), 8, shuffle=True), DataLoader(Pictures(), 8))
