"""The position of Lightning's fit loop in its data."""

from __future__ import annotations

from typing import Any

from spotladder.train.loading import EpochOrder, stores_position


def begin_epoch(trainer: Any, order: EpochOrder) -> None:
    """Set the order of the examples for the trainer's current epoch."""
    order.begin(_loaders(trainer), trainer.current_epoch)


def to_position(trainer: Any, order: EpochOrder) -> bool:
    """Read the batches of the epoch that were trained before the restored step, unless the loaders store their own
    position. Returns whether the epoch continues; otherwise the next one begins, with its hooks."""
    loop, loaders = trainer.fit_loop, _loaders(trainer)
    read = loop.epoch_loop.batch_progress.current.ready
    if read and is_last(trainer):
        loop.reset_restart_stage()
        loop.epoch_loop.restarting = False
        read = 0
    if not all(map(stores_position, loaders)):
        begin_epoch(trainer, order)
        fetcher = loop._data_fetcher  # noqa: SLF001 – no public name
        iter(fetcher)  # Loader processes may have read in another order already.
        for _ in range(read):
            next(fetcher)
        fetcher.fetched -= read  # Lightning adds them.
    return bool(read)


def is_last(trainer: Any) -> bool:
    """Whether the batch is the last one of its epoch."""
    progress = trainer.fit_loop.epoch_loop.batch_progress
    return bool(progress.is_last_batch or progress.current.ready >= trainer.num_training_batches)


def _loaders(trainer: Any) -> list[Any]:
    combined = trainer.fit_loop._combined_loader  # noqa: SLF001 – no public name
    return [] if combined is None else list(combined.flattened)
