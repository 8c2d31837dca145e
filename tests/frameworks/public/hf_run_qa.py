"""transformers, examples/pytorch/question-answering/run_qa.py: the place of an answer, with a cosine schedule."""

import torch
from transformers import BertConfig, BertForQuestionAnswering, Trainer, TrainingArguments, set_seed

from spotladder import train

set_seed(7)
text = torch.randint(0, 64, (96, 8), generator=torch.Generator().manual_seed(1))
data = [{"input_ids": words, "start_positions": words.argmin(), "end_positions": words.argmax()} for words in text]
size = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
model = BertForQuestionAnswering(BertConfig(vocab_size=64, max_position_embeddings=16, **size))
args = TrainingArguments(
    "out", num_train_epochs=3, per_device_train_batch_size=8, lr_scheduler_type="cosine", use_cpu=True,
    report_to="none",
)  # fmt: skip
trainer = Trainer(model, args, train_dataset=data, callbacks=[train.huggingface.callback()])  # changed
trainer.train(resume_from_checkpoint=train.huggingface.checkpoint())  # changed
