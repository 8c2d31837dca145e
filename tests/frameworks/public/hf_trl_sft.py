"""trl, trl/scripts/sft.py: a language model, fine-tuned on prompts and completions."""

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

from spotladder import train

set_seed(7)
vocabulary = {f"w{number}": number for number in range(61)} | {"<unk>": 61, "<pad>": 62, "<eos>": 63}
special = {"pad_token": "<pad>", "eos_token": "<eos>"}
tokenizer = Tokenizer(models.WordLevel(vocabulary))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
text = torch.randint(0, 61, (96, 12), generator=torch.Generator().manual_seed(1)).tolist()
lines = [[f"w{word}" for word in words] for words in text]
data = Dataset.from_list([{"prompt": " ".join(line[:4]), "completion": " ".join(line[4:])} for line in lines])
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=16, n_layer=1, n_head=2))
args = SFTConfig(
    "out", num_train_epochs=3, per_device_train_batch_size=8, max_length=32, bf16=False, use_cpu=True,
    gradient_checkpointing=False, report_to="none",
)  # fmt: skip
callbacks = [train.huggingface.callback()]  # changed
trainer = SFTTrainer(model, args, train_dataset=data, processing_class=tokenizer, callbacks=callbacks)
trainer.train(resume_from_checkpoint=train.huggingface.checkpoint())  # changed
