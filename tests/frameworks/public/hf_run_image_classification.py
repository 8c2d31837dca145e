"""transformers, examples/pytorch/image-classification/run_image_classification.py: a vision transformer with random
crops."""

import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification, set_seed

from spotladder import train


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        picture = torch.randn(3, 20, 20, generator=torch.Generator().manual_seed(index))
        left, top = torch.randint(0, 4, (2,)).tolist()  # a random crop
        return {"pixel_values": picture[:, top : top + 16, left : left + 16], "labels": index % 4}


set_seed(7)
size = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
model = ViTForImageClassification(ViTConfig(image_size=16, patch_size=8, num_labels=4, **size))
args = TrainingArguments(
    "out", num_train_epochs=3, per_device_train_batch_size=8, remove_unused_columns=False, use_cpu=True,
    report_to="none",
)  # fmt: skip
trainer = Trainer(model, args, train_dataset=Pictures(), callbacks=[train.huggingface.callback()])  # changed
trainer.train(resume_from_checkpoint=train.huggingface.checkpoint())  # changed
