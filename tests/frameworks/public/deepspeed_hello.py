"""DeepSpeedExamples, training/HelloDeepSpeed/train_bert_ds.py: masked words, with ZeRO and DeepSpeed's own checkpoints,
the newest of which it finds by itself."""

import os

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch
from torch.distributed import destroy_process_group, get_rank
from transformers import BertConfig, BertForMaskedLM, set_seed

deepspeed.init_distributed("gloo")
set_seed(7)
size = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
chances = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
model = BertForMaskedLM(BertConfig(vocab_size=64, max_position_embeddings=16, **size, **chances))
config = {
    "train_micro_batch_size_per_gpu": 4,
    "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}},
    "zero_optimization": {"stage": 1},
}
model, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
start = 0
path, state = model.load_checkpoint("out")
if path:
    start = state["checkpoint_step"] + 1
text = torch.randint(1, 64, (36, 2, 4, 8), generator=torch.Generator().manual_seed(1))
for step in range(start, 36):
    words = text[step, get_rank()]
    masked = words.masked_fill(torch.arange(8) % 4 == step % 4, 0)
    loss = model(input_ids=masked, labels=words).loss
    model.backward(loss)
    model.step()
    if step % 3 == 2:
        model.save_checkpoint("out", client_state={"checkpoint_step": step})
    if get_rank() == 0:
        print("step", step, loss.item(), flush=True)
if get_rank() == 0:
    torch.save(model.module.state_dict(), "final")
destroy_process_group()
