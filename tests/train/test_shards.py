"""Blocks of arrays in the files of several processes: any part is read; missing and broken files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spotladder.errors import CheckpointCorrupt
from spotladder.train import shards

pytest.importorskip("ml_dtypes")  # It registers the types that NumPy lacks.

DTYPES = ["float32", "bfloat16", "float8_e4m3fn", "int4", "uint32", "complex64", "bool"]


def numbers(dtype: str = "float32") -> Any:
    return (np.arange(96).reshape(12, 8) % 7).astype(dtype)


def blocks(array: Any, *starts: tuple[int, int]) -> shards.Blocks:
    """The blocks of 6 by 4 elements that start there."""
    return shards.Blocks(
        array.shape, array.dtype, {(row, column): array[row : row + 6, column : column + 4] for row, column in starts}
    )


def write_by_two(folder: Path, array: Any) -> None:
    """Process 0 writes the left half, process 1 the right one. An array before it makes the places odd."""
    odd = np.array([1, 2, 3], "uint8")
    shards.write(folder, "shards-0", {"odd": shards.whole(odd), "w": blocks(array, (0, 0), (6, 0))})
    shards.write(folder, "shards-1", {"odd": shards.Blocks((3,), odd.dtype, {}), "w": blocks(array, (0, 4), (6, 4))})


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_is_restored_bit_by_bit(dtype: str, tmp_path: Path) -> None:
    array = numbers(dtype)
    write_by_two(tmp_path, array)
    found = shards.read(tmp_path, "shards-*")
    assert (found["w"].shape, found["w"].dtype) == (array.shape, array.dtype)
    assert found["w"].whole().tobytes() == array.tobytes()
    assert found["odd"].whole().tolist() == [1, 2, 3]


PARTS = [
    (slice(0, 6), slice(0, 4)),
    (slice(None), slice(None)),
    (slice(4, 8), slice(3, 5)),
    (slice(11, 12), slice(None, 7)),
    (slice(5, 5), slice(None)),
]


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_any_part_can_be_read(part: tuple[slice, slice], tmp_path: Path) -> None:
    write_by_two(tmp_path, numbers())
    read = shards.read(tmp_path, "shards-*")["w"][part]
    assert read.shape == numbers()[part].shape
    assert (read == numbers()[part]).all()


def test_a_part_is_read_from_the_files_that_have_it(tmp_path: Path) -> None:
    write_by_two(tmp_path, numbers())
    (tmp_path / "shards-1-0.bin").unlink()
    stored = shards.read(tmp_path, "shards-*")["w"]
    assert (stored[slice(None), slice(0, 4)] == numbers()[:, :4]).all()
    with pytest.raises(CheckpointCorrupt, match=r"shards-1-0.bin: cannot be read"):
        stored.whole()


def test_large_blocks_are_in_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three bytes, then two blocks of 96 bytes: the last one does not fit into the first file."""
    monkeypatch.setattr(shards, "FILE_SIZE", 100)
    write_by_two(tmp_path, numbers())
    sizes = {file.name: file.stat().st_size for file in tmp_path.glob("*.bin")}
    assert sizes == {"shards-0-0.bin": 99, "shards-0-1.bin": 96, "shards-1-0.bin": 96, "shards-1-1.bin": 96}
    assert (shards.read(tmp_path, "shards-*")["w"].whole() == numbers()).all()


def test_an_array_without_elements_needs_none(tmp_path: Path) -> None:
    empty = np.empty((0, 4), "float32")
    shards.write(tmp_path, "shards-0", {"w": shards.whole(empty)})
    assert shards.read(tmp_path, "shards-*")["w"].whole().shape == (0, 4)


def test_the_files_of_every_process_are_needed(tmp_path: Path) -> None:
    write_by_two(tmp_path, numbers())
    (tmp_path / "shards-1.json").unlink()
    with pytest.raises(CheckpointCorrupt, match="w: 48 of 96 elements are in none of the files of 1 processes"):
        shards.read(tmp_path, "shards-*")


@pytest.mark.parametrize("text", ["{", json.dumps({"w": {"shape": [3]}}), json.dumps({"w": 3})])
def test_a_broken_listing_is_rejected(text: str, tmp_path: Path) -> None:
    (tmp_path / "shards-0.json").write_text(text)
    with pytest.raises(CheckpointCorrupt, match=r"shards-0.json: cannot be read"):
        shards.read(tmp_path, "shards-*")


def test_a_file_that_was_cut_short_is_rejected(tmp_path: Path) -> None:
    write_by_two(tmp_path, numbers())
    file = tmp_path / "shards-0-0.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CheckpointCorrupt, match=r"shards-0-0.bin: cannot be read"):
        shards.read(tmp_path, "shards-*")["w"].whole()
