"""transformers, examples/pytorch/language-modeling/run_mlm.py: the words that a random mask hides."""

import torch
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments, set_seed

from spotladder import train


def collate(examples):
    """As DataCollatorForLanguageModeling, which needs a tokenizer."""
    words = torch.stack(examples)
    hidden = torch.rand(words.shape) < 0.15
    return {"input_ids": words.masked_fill(hidden, 0), "labels": words.masked_fill(~hidden, -100)}


set_seed(7)
text = torch.randint(1, 64, (96, 16), generator=torch.Generator().manual_seed(1))
size = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
model = BertForMaskedLM(BertConfig(vocab_size=64, max_position_embeddings=16, **size))
args = TrainingArguments(
    "out", num_train_epochs=3, per_device_train_batch_size=8, eval_strategy="steps", eval_steps=5, use_cpu=True,
    report_to="none",
)  # fmt: skip
callbacks = [train.huggingface.callback()]  # changed
trainer = Trainer(model, args, collate, train_dataset=text, eval_dataset=text[:16], callbacks=callbacks)
trainer.train(resume_from_checkpoint=train.huggingface.checkpoint())  # changed
