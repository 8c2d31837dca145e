"""The random numbers of a data loader depend only on the seed of the epoch and on the examples of a batch."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.train.loading import seed_batches

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks


class Noise:
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return index + torch.rand(())


def batches(loader: Any, seed: int) -> list[list[float]]:
    seed_batches(loader, seed)
    return [batch.tolist() for batch in loader]


def test_a_batch_is_the_same_in_any_process_and_differs_between_epochs() -> None:
    loader = torch.utils.data.DataLoader(Noise(), 4)
    first = batches(loader, 1)
    assert first != batches(loader, 2)
    workers = torch.utils.data.DataLoader(Noise(), 4, num_workers=1, persistent_workers=True)
    list(workers)  # Its process has the dataset without a seed.
    assert batches(workers, 2) == batches(loader, 2)
    assert batches(workers, 1) == first


def test_loading_does_not_change_the_random_state() -> None:
    loader = torch.utils.data.DataLoader(Noise(), 4, generator=torch.Generator().manual_seed(1))
    before = torch.get_rng_state()
    batches(loader, 1)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_stream_is_left_as_it_is() -> None:
    class Stream(torch.utils.data.IterableDataset):  # type: ignore[name-defined]
        def __iter__(self) -> Any:
            return iter(range(4))

    assert batches(torch.utils.data.DataLoader(Stream(), 2), 1) == [[0, 1], [2, 3]]


def test_a_loader_of_another_library_is_left_as_it_is() -> None:
    loader = [torch.ones(2), torch.zeros(2)]
    assert batches(loader, 1) == [[1.0, 1.0], [0.0, 0.0]]
