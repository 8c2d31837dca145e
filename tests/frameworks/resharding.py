"""A rank that restores and commits a tensor that is sharded over all ranks, in a log whose downloads are counted."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from spotladder.checkpoints.disk import DiskStore
from spotladder.checkpoints.entries import FileEntry
from spotladder.errors import CheckpointCorrupt, InvalidSpec
from spotladder.train import membership
from spotladder.train.ranks import ProcessRank
from spotladder.train.session import Job
from tests.train.builders import member

SHAPE = (64, 512)
CORRUPT = 5


class CountingBucket(DiskStore):
    """A store that a program cannot read in place. Adds the key of each downloaded file to `downloads`."""

    def __init__(self, root: Path, downloads: Path) -> None:
        super().__init__(root)
        self._downloads = downloads

    @property
    def folder(self) -> Path | None:  # type: ignore[override]
        return None

    def get_file(self, key: str, path: Path | None) -> FileEntry:
        with self._downloads.open("a") as file:
            file.write(f"{key}\n")
        return super().get_file(key, path)


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def main(folder: Path, attempt: int, rank: int, size: int, port: int, full: int) -> None:  # noqa: PLR0917 – the arguments of a process
    """Restores the tensor, unless this is attempt 1, and commits it. Ends with CORRUPT if the commit is damaged or
    cannot be exchanged, as the disk of rank `full` is full, and with an AssertionError if the tensor is another one."""
    import torch
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard, distribute_tensor

    from spotladder.train import sharded_reader
    from spotladder.train.torch import State, restore_sharded, save_sharded

    if rank == full:
        sharded_reader._write = no_space  # type: ignore[assignment]

    os.environ.update({"SPOTLADDER_RANK": str(rank), "SPOTLADDER_WORLD_SIZE": str(size)})
    membership.open_store = lambda uri: CountingBucket(Path(uri), folder / f"downloads-{attempt}")  # type: ignore
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(float(SHAPE[0] * SHAPE[1])).reshape(SHAPE)
    job = Job(member(folder, ProcessRank(rank, size, "test"), attempt=attempt))
    state = {name: distribute_tensor(whole, mesh, [Shard(0)]) for name in ("weight", "moment")} | {"epoch": 3}
    with job.resume() as found:
        if found is not None:
            zeros = torch.zeros(SHAPE)
            model = {"weight": distribute_tensor(zeros, mesh, [Shard(0)]), "epoch": 0}
            optimizer = {"moment": distribute_tensor(zeros, mesh, [Shard(0)])}
            try:
                restore_sharded(found, model)
                restore_sharded(found, optimizer)
            except CheckpointCorrupt:
                sys.exit(CORRUPT)
            state = model | optimizer
    if rank == 0:
        linear = torch.nn.Linear(SHAPE[1], SHAPE[0], bias=False)
        linear.weight = torch.nn.Parameter(state["weight"])
        with pytest.raises(InvalidSpec, match=r"model\.weight: is sharded"):
            State(model=linear).save(folder)
    for tensor in (state["weight"], state["moment"]):
        assert isinstance(tensor, DTensor)
        assert torch.equal(tensor.full_tensor(), whole)
    assert state["epoch"] == 3
    with job.commit(attempt) as committed:
        save_sharded(committed, state)
    job.flush()
    job.close()
    distributed.destroy_process_group()
