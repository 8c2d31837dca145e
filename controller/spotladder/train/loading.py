"""PyTorch's data loaders, with random numbers that depend only on the seed of the epoch and on the examples of a batch.

A random mask or augmentation is then the same when a batch is loaded again, by any loader process, and what a loader
reads ahead does not change the random state of the training.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from spotladder.train import randomness


def seed_batches(loader: Any, seed: int) -> None:
    """Make the batches of this DataLoader a function of `seed` and of their examples, from its next iteration on.

    A loader of an IterableDataset, one without batches, or one that is not PyTorch's is left as it is.
    """
    from torch.utils.data import DataLoader, IterableDataset

    loader = getattr(loader, "base_dataloader", loader)  # Accelerate's loaders contain PyTorch's.
    if not isinstance(loader, DataLoader):
        return
    if not isinstance(loader.dataset, _Batches):
        if isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
            return
        batches = _Batches(loader.dataset, loader.collate_fn)
        object.__setattr__(loader, "dataset", batches)  # DataLoader itself refuses another dataset.
        loader.collate_fn = _as_it_is
        loader._iterator = None  # noqa: SLF001 – persistent loader processes have the dataset without a seed
    loader.dataset.seed.fill_(seed)


class EpochOrder:
    """Makes the shuffle of loaders a function of the epoch and of one seed, which a commit keeps."""

    def __init__(self) -> None:
        import torch

        self._seed = torch.initial_seed()

    def state_dict(self) -> dict[str, int]:
        return {"seed": self._seed}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        self._seed = state["seed"]

    def begin(self, loaders: Sequence[Any], epoch: int) -> None:
        """Set the order of this epoch and the random numbers of its batches, in the loaders that do not store their own
        position."""
        import torch

        for number, loader in enumerate(loaders):
            if not isinstance(loader, torch.utils.data.DataLoader) or stores_position(loader):
                continue
            seed = (self._seed + epoch + (number << 32)) % 2**63
            seed_batches(loader, seed)
            loader.generator = torch.Generator().manual_seed(seed)
            for part in (loader.sampler, loader.batch_sampler):
                if hasattr(part, "generator"):
                    part.generator = torch.Generator().manual_seed(seed)
                if callable(getattr(part, "set_epoch", None)):
                    part.set_epoch(epoch)


def stores_position(loader: Any) -> bool:
    """Whether the loader stores its own position in the checkpoint of its trainer."""
    return hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict")


class _Batches:
    """A dataset that loads and collates whole batches, each with a random state of its own."""

    def __init__(self, dataset: Any, collate: Any) -> None:
        import torch

        self._dataset, self._collate = dataset, collate
        self.seed = torch.zeros((), dtype=torch.int64).share_memory_()  # Persistent loader processes see a new one.

    def __getitems__(self, indices: Any) -> Any:
        """Called by PyTorch for each batch."""
        import numpy as np
        import torch

        with randomness.kept():
            own = crc32(repr((int(self.seed), indices)).encode())
            random.seed(own)
            np.random.seed(own)
            torch.default_generator.manual_seed(own)  # torch.manual_seed would change the generators of GPUs, too.
            load = getattr(self._dataset, "__getitems__", None)
            return self._collate(load(indices) if load else [self._dataset[index] for index in indices])

    def __getitem__(self, index: Any) -> Any:
        return self._dataset[index]

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Not there yet while the object is unpickled.
            raise AttributeError(name)
        return getattr(self._dataset, name)


def _as_it_is(batch: Any) -> Any:
    return batch
