"""Lightning, examples/pytorch/domain_templates: an autoencoder of digits."""

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from spotladder import train


class Autoencoder(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 64))

    def training_step(self, batch, index):
        (picture,) = batch
        loss = nn.functional.mse_loss(self.decoder(self.encoder(picture)), picture)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


lightning.seed_everything(7)
data = DataLoader(TensorDataset(torch.randn(96, 64)), batch_size=8, shuffle=True)
model = Autoencoder()
callbacks = [train.lightning.callback()]  # changed
trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, callbacks=callbacks)
trainer.fit(model, data)
