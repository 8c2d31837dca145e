"""transformers, examples/pytorch/image-classification: pictures that loader processes shift and flip at random."""

import random

import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification, set_seed

from spotladder import train


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        picture = torch.rand(1, 8, 8, generator=torch.Generator().manual_seed(index))
        picture = picture.roll(random.randrange(3), dims=2) + 0.1 * torch.randn(1, 8, 8)
        return {"pixel_values": picture.flip(2) if torch.rand(()) < 0.5 else picture, "labels": index % 3}


set_seed(7)
size = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
model = ViTForImageClassification(ViTConfig(image_size=8, patch_size=4, num_channels=1, num_labels=3, **size))
args = TrainingArguments(
    "out", num_train_epochs=3, per_device_train_batch_size=8, dataloader_num_workers=2, remove_unused_columns=False,
    use_cpu=True, report_to="none",
)  # fmt: skip
trainer = Trainer(model, args, train_dataset=Pictures(), callbacks=[train.huggingface.callback()])  # changed
trainer.train(resume_from_checkpoint=train.huggingface.checkpoint())  # changed
