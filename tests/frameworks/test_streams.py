"""Streams of data that save their own position are parts of a `State`: they continue with the batch after the
commit."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spotladder.train.torch import State
from tests.absent import absent

pytestmark = pytest.mark.frameworks


def installed(name: str, target: str = "public") -> Any:
    """The module of a package of `make test-public`; `target` is its name in SPOTLADDER_REQUIRE."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        absent(str(error), target)


def stream() -> Any:
    return installed("datasets").Dataset.from_dict({"x": range(40)}).to_iterable_dataset(num_shards=4)


def shuffled(workers: int) -> Any:
    generator = installed("torch").Generator().manual_seed(3)
    return loader(list(range(40)), shuffle=True, generator=generator, num_workers=workers)


def loader(data: Any, **options: Any) -> Any:
    return installed("torchdata.stateful_dataloader").StatefulDataLoader(data, 4, **options)


STREAMS: dict[str, Callable[[], Any]] = {
    "torchdata": lambda: shuffled(0),
    "torchdata in processes": lambda: shuffled(2),
    "datasets": stream,
    "datasets in a random order of the shards": lambda: stream().shuffle(3, buffer_size=1),
    "datasets in torchdata": lambda: loader(stream()),
    "datasets in processes": lambda: loader(stream(), num_workers=2),
}


def plain(batch: Any) -> Any:
    batch = batch["x"] if isinstance(batch, dict) else batch
    return batch.tolist() if hasattr(batch, "tolist") else batch


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_continues_after_the_commit(name: str, tmp_path: Path) -> None:
    whole = [plain(batch) for batch in STREAMS[name]()]
    data = STREAMS[name]()
    batches = iter(data)
    before = [plain(next(batches)) for _ in range(5)]
    State(data=data).save(tmp_path)
    again = STREAMS[name]()
    State(data=again).restore(tmp_path)
    assert before + [plain(batch) for batch in again] == whole
    assert len(whole) > 5


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_of_mosaicml_continues_after_the_commit(workers: int, tmp_path: Path) -> None:
    streaming = installed("streaming", "mosaicml")
    with streaming.MDSWriter(out=str(tmp_path / "data"), columns={"x": "int"}) as file:
        for number in range(40):
            file.write({"x": number})

    def opened() -> Any:
        streaming.base.util.clean_stale_shared_memory()  # As after the loss of the machine.
        data = streaming.StreamingDataset(local=str(tmp_path / "data"), batch_size=4, shuffle=True)
        return streaming.StreamingDataLoader(data, batch_size=4, num_workers=workers)

    whole = [plain(batch) for batch in opened()]
    data = opened()
    batches = iter(data)
    before = [plain(next(batches)) for _ in range(5)]
    State(data=data).save(tmp_path)
    del batches, data
    again = opened()
    State(data=again).restore(tmp_path)
    assert before + [plain(batch) for batch in again] == whole
    assert len(whole) == 10
