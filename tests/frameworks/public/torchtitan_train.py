"""torchtitan, torchtitan/train.py: FSDP, and checkpoints of PyTorch DCP with the position in the data, the newest of
which the program finds by itself."""

from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed import destroy_process_group, get_rank, init_process_group
from torch.distributed.checkpoint import state_dict as parts
from torch.distributed.fsdp import fully_shard


class TrainState:
    """The progress and the position in the data of this rank."""

    def __init__(self):
        self.step = 0
        self.data = torch.Generator().manual_seed(get_rank())

    def state_dict(self):
        return {"step": torch.tensor(self.step), f"data-{get_rank()}": self.data.get_state()}

    def load_state_dict(self, state):
        self.step = int(state["step"])
        self.data.set_state(state[f"data-{get_rank()}"])


class App:
    """The model and its optimizer."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        model, optimizer = parts.get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state):
        parts.set_state_dict(
            self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )  # fmt: skip


init_process_group("gloo")
torch.manual_seed(7)
model = torch.nn.Sequential(
    torch.nn.Embedding(64, 16), torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 64)
)
fully_shard(model, mesh=torch.distributed.init_device_mesh("cpu", (2,)))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
progress = TrainState()
states = {"app": App(model, optimizer), "train_state": progress}
steps = [int(path.parent.name.removeprefix("step-")) for path in Path("out").glob("step-*/.metadata")]
if steps:
    dcp.load(states, checkpoint_id=f"out/step-{max(steps)}")
while progress.step < 36:
    words = torch.randint(0, 64, (8, 17), generator=progress.data)
    loss = torch.nn.functional.cross_entropy(model(words[:, :-1]).mT, words[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    progress.step += 1
    if progress.step % 3 == 0:
        dcp.save(states, checkpoint_id=f"out/step-{progress.step}")
    if get_rank() == 0:
        print("step", progress.step, loss.item(), flush=True)
whole = parts.get_model_state_dict(model, options=parts.StateDictOptions(full_state_dict=True))
if get_rank() == 0:
    torch.save(whole, "final")
torch.distributed.barrier()  # Threads of Gloo that still hold tensors abort a process that ends.
destroy_process_group()
