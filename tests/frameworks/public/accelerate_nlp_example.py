"""accelerate, examples/complete_nlp_example.py: pairs of sentences, in a loop of its own that can resume."""

import argparse
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

parser = argparse.ArgumentParser()
parser.add_argument("--resume_from_checkpoint")
args = parser.parse_args()

set_seed(7)
accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
text = torch.randint(0, 64, (96, 8), generator=torch.Generator().manual_seed(1))
data = [{"input_ids": words, "attention_mask": torch.ones_like(words), "labels": words.sum() % 2} for words in text]
size = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
model = BertForSequenceClassification(BertConfig(vocab_size=64, max_position_embeddings=16, **size))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
schedule = get_linear_schedule_with_warmup(optimizer, 4, 36)
loader = DataLoader(data, 8, shuffle=True, generator=torch.Generator())  # else its start would change the dropout
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

done = 0
if args.resume_from_checkpoint:
    accelerator.load_state(args.resume_from_checkpoint)
    done = int(Path(args.resume_from_checkpoint).name.removeprefix("step_"))
for epoch in range(done // 12, 3):
    loader.set_epoch(epoch)
    model.train()
    for batch in accelerator.skip_first_batches(loader, done % 12) if done % 12 else loader:
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        done += 1
        if done % 3 == 0:
            accelerator.save_state(f"out/step_{done}")
        print("step", done, loss.item(), flush=True)
torch.save(accelerator.unwrap_model(model).state_dict(), "final")
