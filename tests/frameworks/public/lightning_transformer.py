"""Lightning, examples/pytorch/basics/transformer.py: a language model with a schedule and validation."""

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from spotladder import train


class Language(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(64, 16)
        self.body = nn.TransformerEncoderLayer(16, 2, 16, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 64)

    def training_step(self, batch, index):
        (words,) = batch
        loss = nn.functional.cross_entropy(self.head(self.body(self.words(words[:, :-1]))).mT, words[:, 1:])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("valid", self.training_step(batch, index))

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 36)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


lightning.seed_everything(7)
data = TensorDataset(torch.randint(0, 64, (96, 9)))
model = Language()
callbacks = [train.lightning.callback()]  # changed
trainer = lightning.Trainer(
    max_epochs=3, accelerator="cpu", logger=False, gradient_clip_val=1.0, callbacks=callbacks
)  # fmt: skip
trainer.fit(model, DataLoader(data, 8, shuffle=True), DataLoader(data, 8))
