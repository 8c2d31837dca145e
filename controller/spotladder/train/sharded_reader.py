"""Restores sharded state so that all ranks together read each file of a commit once from its store.

1. Each rank downloads and verifies its share of the files (`Found.share`).
2. The ranks exchange which parts of the other files they need: the tensors of `torch.distributed.checkpoint` that
   overlap with their own shards.
3. The rank that has a file sends these parts. The receiver writes them where they are in the file, into an otherwise
   empty one, so that PyTorch's reader finds them there.

The ranks use a process group with gloo for it, because the bytes are in the host's memory.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed
from torch.distributed.checkpoint import FileSystemReader
from torch.futures import Future

from spotladder.errors import CheckpointCorrupt, SpotladderError
from spotladder.train.found import Found

PIECE = 64 << 20
"""Bytes that are sent at once."""

LONGEST_WAIT = timedelta(days=1)
"""Time that a rank waits for another one, whose store may be unavailable, or which serves other ranks first. If the
process of a rank ends, the others stop waiting at once."""

METADATA = ".metadata"
"""The file with the places of all tensors, which every rank reads."""

Part = tuple[str, int, int]
"""A part of a file: name, offset, length."""


class SharedReader(FileSystemReader):  # type: ignore[misc]
    """Reads the commit on all ranks of the default process group. Raises CheckpointCorrupt on every rank if the share
    of one does not verify or cannot be exchanged. `close` ends the group that the ranks use for it."""

    def __init__(self, found: Found) -> None:
        self._group = distributed.new_group(timeout=LONGEST_WAIT, backend="gloo")
        self._rank, self._size = distributed.get_rank(), distributed.get_world_size()
        self._files = found.shares(self._size)
        failed: Exception | None = None
        folder = Path()
        try:
            folder = found.share(self._rank, self._size)
        except (SpotladderError, OSError) as error:
            failed = error
        self._raise_together(failed)
        super().__init__(folder)
        # Files of the share are links. Others are parts that an earlier reader has received.
        self._elsewhere = {name for name in self._files if not (folder / name).is_symlink()}
        if METADATA in self._files:
            self._receive([(METADATA, 0, self._files[METADATA][1])])

    def read_data(self, plan: Any, planner: Any) -> Future[None]:
        # PyTorch's reader raises for an item that has no place, once the ranks do not wait for each other.
        found = [self.storage_data.get(item.storage_index) for item in plan.items]
        places = [place for place in found if place is not None]
        self._receive(sorted({(place.relative_path, place.offset, place.length) for place in places}))
        return super().read_data(plan, planner)

    def close(self) -> None:
        distributed.destroy_process_group(self._group)

    def _receive(self, needed: list[Part]) -> None:
        """Get these parts of files that this rank does not have, and send other ranks theirs. Collective, also after an
        error: a rank that left would keep the others waiting."""
        folder = Path(self.path)
        failed: Exception | None = None
        missing = [part for part in needed if part[0] in self._elsewhere]
        # All ranks go through the same list, so that each send meets its receipt.
        for receiver, parts in enumerate(self._gathered(missing)):
            for name, offset, length in parts:
                owner = self._files[name][0]
                if self._rank not in (owner, receiver):
                    continue
                for at in range(offset, offset + length, PIECE):
                    size = min(PIECE, offset + length - at)
                    piece = np.zeros(size, np.uint8)
                    try:
                        if self._rank == owner:
                            piece = _read(folder / name, at, size)
                    except OSError as error:
                        failed = error
                    if self._rank == owner:
                        distributed.send(torch.from_numpy(piece), receiver, self._group)
                        continue
                    distributed.recv(torch.from_numpy(piece), owner, self._group)
                    try:
                        _write(folder / name, at, piece.data)
                    except OSError as error:
                        failed = error
        self._raise_together(failed)

    def _raise_together(self, failed: Exception | None) -> None:
        """Raise the error, or CheckpointCorrupt if another rank has one. Collective."""
        problems = self._gathered("" if failed is None else f"{failed}")
        if isinstance(failed, SpotladderError):
            raise failed
        for number, problem in enumerate(problems):
            if problem:
                raise CheckpointCorrupt(f"rank {number}: {problem}") from failed

    def _gathered(self, mine: Any) -> list[Any]:
        found: list[Any] = [None] * self._size
        distributed.all_gather_object(found, mine, self._group)
        return found


def _read(file: Path, at: int, size: int) -> Any:
    piece = np.fromfile(file, np.uint8, size, offset=at)
    if len(piece) < size:
        raise OSError(f"{file.name}: has fewer than {at + size:,} bytes, to which {METADATA} refers")
    return piece


def _write(file: Path, at: int, data: memoryview) -> None:
    file.touch()
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(data)
