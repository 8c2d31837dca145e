"""transformers, examples/pytorch/text-classification/run_glue.py: a class for each text, evaluated after each epoch."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

from spotladder import train

set_seed(7)
text = torch.randint(0, 64, (96, 8), generator=torch.Generator().manual_seed(1))
data = [{"input_ids": words, "attention_mask": torch.ones_like(words), "labels": words.sum() % 2} for words in text]
size = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
model = BertForSequenceClassification(BertConfig(vocab_size=64, max_position_embeddings=16, **size))
args = TrainingArguments(
    "out", num_train_epochs=3, per_device_train_batch_size=8, eval_strategy="epoch", learning_rate=1e-3,
    lr_scheduler_type="reduce_lr_on_plateau", lr_scheduler_kwargs={"patience": 0, "threshold": 10.0},
    use_cpu=True, report_to="none",
)  # fmt: skip
callbacks = [train.huggingface.callback()]  # changed
trainer = Trainer(model, args, train_dataset=data, eval_dataset=data[:16], callbacks=callbacks)
trainer.train(resume_from_checkpoint=train.huggingface.checkpoint())  # changed
