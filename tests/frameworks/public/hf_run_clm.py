"""transformers, examples/pytorch/language-modeling/run_clm.py: a causal language model."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

from spotladder import train

set_seed(7)
text = torch.randint(0, 64, (96, 16), generator=torch.Generator().manual_seed(1))
data = [{"input_ids": words, "labels": words} for words in text]
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2))
args = TrainingArguments("out", num_train_epochs=3, per_device_train_batch_size=8, use_cpu=True, report_to="none")
trainer = Trainer(model, args, train_dataset=data, callbacks=[train.huggingface.callback()])  # changed
trainer.train(resume_from_checkpoint=train.huggingface.checkpoint())  # changed
