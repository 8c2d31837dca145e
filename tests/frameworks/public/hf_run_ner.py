"""transformers, examples/pytorch/token-classification/run_ner.py: a label for each word, accumulated gradients."""

import torch
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments, set_seed

from spotladder import train

set_seed(7)
text = torch.randint(0, 64, (192, 8), generator=torch.Generator().manual_seed(1))
data = [{"input_ids": words, "attention_mask": torch.ones_like(words), "labels": words % 3} for words in text]
size = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
model = BertForTokenClassification(BertConfig(vocab_size=64, max_position_embeddings=16, num_labels=3, **size))
args = TrainingArguments(
    "out", num_train_epochs=3, per_device_train_batch_size=8, gradient_accumulation_steps=2, use_cpu=True,
    report_to="none",
)  # fmt: skip
trainer = Trainer(model, args, train_dataset=data, callbacks=[train.huggingface.callback()])  # changed
trainer.train(resume_from_checkpoint=train.huggingface.checkpoint())  # changed
