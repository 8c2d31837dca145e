"""transformers, examples/pytorch/language-modeling/run_mlm.py: masked words, which the collator draws at random."""

import torch
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments, set_seed

from spotladder import train

set_seed(7)
text = torch.randint(1, 64, (96, 8), generator=torch.Generator().manual_seed(1))


def masked(examples):
    words = torch.stack([example["input_ids"] for example in examples])
    hidden = torch.rand(words.shape) < 0.15
    return {"input_ids": words.masked_fill(hidden, 0), "labels": words.masked_fill(~hidden, -100)}


size = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
model = BertForMaskedLM(BertConfig(vocab_size=64, max_position_embeddings=16, **size))
args = TrainingArguments("out", num_train_epochs=3, per_device_train_batch_size=8, use_cpu=True, report_to="none")
data = [{"input_ids": words} for words in text]
trainer = Trainer(
    model, args, data_collator=masked, train_dataset=data, callbacks=[train.huggingface.callback()]  # changed
)  # fmt: skip
trainer.train(resume_from_checkpoint=train.huggingface.checkpoint())  # changed
