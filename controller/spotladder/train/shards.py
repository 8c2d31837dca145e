"""Arrays in files, also those that are spread over processes: each process writes its blocks, and any part can be read.

What a process writes has a name, such as `shards-1`. `shards-1.json` lists the arrays with their shapes and types, and
where each block starts in the array and in the files. `shards-1-0.bin`, `shards-1-1.bin`, … have the elements of the
blocks, in the order of NumPy. To read a part of an array, only these bytes of the files are read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotladder.errors import CheckpointCorrupt, first_line

FILE_SIZE = 1 << 30
"""Maximum size of a file in bytes, unless a block is larger: several files are written and uploaded in parallel."""

FILES_AT_ONCE = 4

Place = tuple[int, ...]
"""The position of a block's first element in the array."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of one array that this process writes: NumPy's or JAX's arrays."""

    shape: tuple[int, ...]
    dtype: Any
    blocks: Mapping[Place, Any]


def whole(array: Any) -> Blocks:
    """An array in one block."""
    return Blocks(array.shape, array.dtype, {(0,) * array.ndim: array})


def write(folder: Path, writer: str, arrays: Mapping[str, Blocks]) -> None:
    """Write the blocks of this process, under the name `writer`.

    Of equal blocks of several processes, only one process may write its own.
    """
    files: list[list[Any]] = []
    listed: dict[str, Any] = {}
    filled = 0
    for name, array in arrays.items():
        blocks = []
        for start, data in array.blocks.items():
            size = _size(data.shape, array.dtype)
            if not files or filled + size > FILE_SIZE:
                files.append([])
                filled = 0
            file = _file(writer, len(files) - 1)
            blocks.append({"start": start, "shape": data.shape, "file": file, "offset": filled})
            files[-1].append(data)
            filled += size
        listed[name] = {"shape": array.shape, "dtype": str(array.dtype), "blocks": blocks}
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        list(pool.map(_write, [folder / _file(writer, number) for number in range(len(files))], files))
    (folder / f"{writer}.json").write_text(json.dumps(listed), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Block:
    """Where the elements of a block are."""

    shape: tuple[int, ...]
    file: Path
    offset: int

    def elements(self, dtype: Any) -> Any:
        """An array that reads the file when its elements are used."""
        import numpy as np

        try:
            raw = np.memmap(self.file, np.uint8, "r", self.offset, (_size(self.shape, dtype),))
        except (OSError, ValueError) as error:
            raise CheckpointCorrupt(f"{self.file.name}: cannot be read: {first_line(error)}") from error
        return raw.view(dtype).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class Stored:
    """An array in the files of all processes. `array[slices]` reads a part of it."""

    shape: tuple[int, ...]
    dtype: Any
    blocks: dict[Place, Block]

    def __getitem__(self, part: Sequence[slice]) -> Any:
        import numpy as np

        spans = [one.indices(size)[:2] for one, size in zip(part, self.shape, strict=True)]
        found = np.empty([end - begin for begin, end in spans], self.dtype)
        for start, block in self.blocks.items():
            common = [
                (max(begin, at), min(end, at + size))
                for (begin, end), at, size in zip(spans, start, block.shape, strict=True)
            ]
            if all(begin < end for begin, end in common):
                here = _relative(common, [begin for begin, _ in spans])
                found[here] = block.elements(self.dtype)[_relative(common, start)]
        return found

    def whole(self) -> Any:
        """The array as one of NumPy."""
        return self[(slice(None),) * len(self.shape)]


def read(folder: Path, writers: str) -> dict[str, Stored]:
    """The arrays that these writers (`shards-*`) have written together; empty without such files.

    Raises CheckpointCorrupt if a part of an array is missing.
    """
    import numpy as np

    found: dict[str, Stored] = {}
    listings = sorted(folder.glob(f"{writers}.json"))
    for listing in listings:
        try:
            for name, array in json.loads(listing.read_text(encoding="utf-8")).items():
                stored = found.setdefault(name, Stored(tuple(array["shape"]), np.dtype(array["dtype"]), {}))
                for raw in array["blocks"]:
                    block = Block(tuple(raw["shape"]), folder / raw["file"], raw["offset"])
                    stored.blocks[tuple(raw["start"])] = block
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise CheckpointCorrupt(f"{listing.name}: cannot be read: {first_line(error)}") from error
    for name, stored in found.items():
        size = math.prod(stored.shape)
        if missing := size - sum(math.prod(block.shape) for block in stored.blocks.values()):
            raise CheckpointCorrupt(
                f"{name}: {missing} of {size} elements are in none of the files of {len(listings)} processes: restore "
                "from the files of all processes that saved it"
            )
    return found


def _write(path: Path, blocks: list[Any]) -> None:
    import numpy as np

    with path.open("wb") as file:
        for data in blocks:
            file.write(np.ascontiguousarray(data).reshape(-1).view(np.uint8).data)


def _file(writer: str, number: int) -> str:
    return f"{writer}-{number}.bin"


def _size(shape: tuple[int, ...], dtype: Any) -> int:
    size: int = math.prod(shape) * dtype.itemsize
    return size


def _relative(spans: list[tuple[int, int]], origin: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(begin - at, end - at) for (begin, end), at in zip(spans, origin, strict=True))
