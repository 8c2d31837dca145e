"""PyTorch: saves and restores the state of a training program.

    state = train.torch.State(model=model, optimizer=optimizer, scheduler=scheduler, sampler=sampler)
    with job.resume() as found:
        if found:
            state.restore(found)
            start = found.step
    …
            with job.commit(step) as folder:
                state.save(folder)

Rank 0 writes the state that data-parallel training keeps equal on all ranks (modules, optimizers, schedulers, gradient
scalers) into `state.pt`. Each rank writes every other part that has a `state_dict` (samplers, stateful data loaders)
into `rank-N.pt`, and the random state of PyTorch, Python and NumPy. Both files are read with `weights_only=True`, so
that a checkpoint can never run code.

In a commit, `save` copies the tensors to the host's memory, and the files are written while the training continues.
Without enough free memory for a copy it writes them itself. In a commit with `replicated=True` only rank 0 writes.

For state that is sharded over ranks (FSDP, DTensor) use `save_sharded` and `restore_sharded`, which use
`torch.distributed.checkpoint` in the same folder.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

from spotladder.errors import CheckpointCorrupt, InvalidSpec, first_line
from spotladder.extras import require
from spotladder.train import randomness, ranks, writing
from spotladder.train.found import Found
from spotladder.train.snapshot import Snapshots, tensors

_SHARED = "state.pt"


class State:
    """The named parts of a training program: anything with `state_dict` and `load_state_dict`.

    A `DistributedDataParallel` module counts as the module inside it, so a commit can be read without it.
    """

    def __init__(self, **parts: Any) -> None:
        require("torch", "torch")
        from torch.amp.grad_scaler import GradScaler
        from torch.nn import Module
        from torch.nn.parallel import DistributedDataParallel
        from torch.optim import Optimizer
        from torch.optim.lr_scheduler import LRScheduler

        for name, part in parts.items():
            if not (hasattr(part, "state_dict") and hasattr(part, "load_state_dict")):
                raise InvalidSpec(
                    f"{type(part).__name__} has no state_dict and load_state_dict: pass objects that have both",
                    path=name,
                )
        bare = {
            name: part.module if isinstance(part, DistributedDataParallel) else part for name, part in parts.items()
        }
        equal_everywhere = (Module, Optimizer, LRScheduler, GradScaler)
        self._shared = {name: part for name, part in bare.items() if isinstance(part, equal_everywhere)}
        self._own = {name: part for name, part in bare.items() if name not in self._shared}
        self._rank = ranks.discover().rank
        self._snapshots = defaultdict[str, Snapshots](Snapshots)

    def save(self, folder: Path) -> None:
        """Write this rank's part of a commit. Every rank must call it. Raises InvalidSpec for sharded state."""
        if self._rank > 0 and writing.is_replicated(folder):
            return
        if self._rank == 0:
            self._write(folder / _SHARED, {name: part.state_dict() for name, part in self._shared.items()})
        self._write(folder / f"rank-{self._rank}.pt", {name: part.state_dict() for name, part in self._own.items()})
        randomness.save(folder, self._rank)

    def restore(self, found: Found | Path) -> None:
        """Restore all parts from a commit, or from a folder with the files of all ranks.

        A rank that the commit does not have gets rank 0's state. Raises CheckpointCorrupt if the parts or their shapes
        differ from the saved ones.
        """
        import torch

        folder = found.to_read() if isinstance(found, Found) else found
        # Modules copy from the pages of the mapped file. Other parts keep the tensors, so these are copied before.
        shared = {
            name: saved if isinstance(self._shared.get(name), torch.nn.Module) else copy.deepcopy(saved)
            for name, saved in _read(folder / _SHARED, mmap=True).items()
        }
        _load(self._shared, shared, _SHARED)
        own = f"rank-{randomness.rank_in(folder, self._rank)}.pt"
        _load(self._own, _read(folder / own), own)
        randomness.restore(folder, self._rank)

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        """Write a file. In a commit only a copy in the host's memory is made now, if there is memory for it."""
        _refuse_sharded(content)
        copied = self._snapshots[path.name].take(content) if writing.is_deferred(path) else None
        if copied is not None:
            writing.write(path, lambda: copied.write(lambda content: _save(path, content)))
        else:
            _save(path, content)


class Sampler:
    """An endless sequence of batches of example indices for one rank: `DataLoader(…, batch_sampler=sampler)`.

    Every epoch has another order and leaves out the examples that do not fill a batch on all ranks. `batch` is the
    number of examples in one rank's batch. The sampler saves the position of the last batch that it returned, so read
    the data in the training process (`num_workers=0`). Loader processes read ahead: with them, use a data loader that
    saves its own position, such as torchdata's StatefulDataLoader.
    """

    def __init__(self, examples: int, batch: int, *, seed: int = 0) -> None:
        world = ranks.discover()
        if examples < batch * world.size:
            raise InvalidSpec(
                f"{examples} examples do not fill one batch of {batch} on {world.size} ranks", path="batch"
            )
        self._examples, self._seed = examples, seed
        self._rank, self._ranks, self._together = world.rank, world.size, batch * world.size
        self._epoch = self._used = 0

    def __iter__(self) -> Iterator[list[int]]:
        import torch

        shuffled, order = -1, torch.empty(0)
        while True:
            if self._used + self._together > self._examples:
                self._epoch, self._used = self._epoch + 1, 0
            if shuffled != self._epoch:
                shuffled = self._epoch
                order = torch.randperm(self._examples, generator=torch.Generator().manual_seed(self._seed + shuffled))
            batch = order[self._used : self._used + self._together]
            self._used += self._together
            yield batch[self._rank :: self._ranks].tolist()

    def state_dict(self) -> dict[str, int]:
        """The epoch, and how many of its examples all ranks together have used."""
        return {"epoch": self._epoch, "used": self._used, "examples": self._examples, "seed": self._seed}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continue from this position, also with another number of ranks. Raises ValueError for other data."""
        if (state["examples"], state["seed"]) != (self._examples, self._seed):
            raise ValueError(
                f"the position is in {state['examples']} examples shuffled with seed {state['seed']}, the program uses "
                f"{self._examples} and seed {self._seed}"
            )
        self._epoch, self._used = state["epoch"], state["used"]


def save_sharded(folder: Path, state: dict[str, Any]) -> None:
    """Write this rank's shards of `state` with `torch.distributed.checkpoint`. Every rank must call it.

    `state` is the result of `torch.distributed.checkpoint.state_dict.get_state_dict` or of the parts' `state_dict`s.
    Raises InvalidSpec in a commit with `replicated=True`.
    """
    from torch.distributed import checkpoint

    if writing.is_replicated(folder) and ranks.discover().size > 1:
        raise InvalidSpec("is sharded over ranks: commit it without replicated=True", path="save_sharded")
    checkpoint.save(state, storage_writer=checkpoint.FileSystemWriter(folder))


def restore_sharded(found: Found | Path, state: dict[str, Any]) -> None:
    """Fill the tensors of `state` in place, also with another number of ranks or another sharding. Every rank must
    call it. Of a commit, the ranks of the default process group together read each file once from the store. Raises
    CheckpointCorrupt.
    """
    from torch import distributed
    from torch.distributed import checkpoint

    reading: AbstractContextManager[checkpoint.FileSystemReader]
    if isinstance(found, Found) and distributed.is_initialized() and distributed.get_world_size() > 1:
        from spotladder.train.sharded_reader import SharedReader

        reading = closing(SharedReader(found))
    else:
        reading = nullcontext(checkpoint.FileSystemReader(found.to_read() if isinstance(found, Found) else found))
    with reading as reader:
        try:
            checkpoint.load(state, storage_reader=reader)
        except (checkpoint.api.CheckpointException, OSError, RuntimeError, ValueError) as error:
            raise CheckpointCorrupt(
                f"sharded state does not match this program's ({first_line(error)}): was it changed since the commit?"
            ) from error


def _refuse_sharded(content: dict[str, Any]) -> None:
    for name, value in tensors(content):
        if hasattr(value, "device_mesh"):
            raise InvalidSpec("is sharded over ranks: use train.torch.save_sharded for it", path=name)


def _save(path: Path, content: dict[str, Any]) -> None:
    import torch

    torch.save(content, path)
    if unsafe := torch.serialization.get_unsafe_globals_in_checkpoint(path):
        raise InvalidSpec(
            f"a state_dict holds {', '.join(unsafe)}, which could not be read back: use only tensors, numbers, text, "
            "lists and dicts, or allow the type with torch.serialization.add_safe_globals",
            path=path.name,
        )
    try:
        _read(path, mmap=True)
    except CheckpointCorrupt as error:  # PyTorch needs more types than it names, as for NumPy's.
        raise InvalidSpec(
            "a state_dict could not be read back: use only tensors, numbers, text, lists and dicts", path=path.name
        ) from error


def _read(path: Path, *, mmap: bool = False) -> dict[str, Any]:
    import pickle

    import torch

    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        raise CheckpointCorrupt(f"{path.name}: cannot be read: {first_line(error)}") from error
    return content


def _load(parts: Mapping[str, Any], saved: Mapping[str, Any], file: str) -> None:
    if parts.keys() != saved.keys():
        raise CheckpointCorrupt(
            f"{file}: has {', '.join(saved) or 'nothing'}, the program has {', '.join(parts) or 'nothing'}: was it "
            "changed since the commit?"
        )
    for name, part in parts.items():
        try:
            part.load_state_dict(saved[name])
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            raise CheckpointCorrupt(
                f"{file}: {name} does not match this program's ({first_line(error)}): was it changed since the commit?"
            ) from error
