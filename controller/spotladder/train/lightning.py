"""PyTorch Lightning: the only line that a script needs is `Trainer(callbacks=[train.lightning.callback()])`.

The callback restores the newest commit when `fit` starts, whatever `ckpt_path` is, and commits after a training step:
at the job's interval, at an eviction notice on any rank, and after the last step. A commit is Lightning's own
checkpoint, with the random state of each rank. At a notice `fit` ends with `Interrupted` (exit code 75).

A commit within an epoch includes the position in the data. For that the callback gives the shuffle of each epoch and
the random numbers of each batch a seed of their own, and a resumed epoch reads and skips the batches that were trained.
A loader with `state_dict`, such as torchdata's StatefulDataLoader, continues by itself.

A commit has all that belongs to its step: it follows the hooks of the other callbacks and of the module. That of the
last step of an epoch follows the validation and the hooks of the end of the epoch, and the last one `on_train_end`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from spotladder.errors import InvalidSpec
from spotladder.extras import require
from spotladder.train import loading, randomness
from spotladder.train import torch as torch_state
from spotladder.train.framework_loop import FrameworkLoop, loop_of_current, numbers

FILE = "lightning.ckpt"


def callback() -> Any:
    """The callback for one Trainer. Raises EnvironmentFailure if Lightning is not installed."""
    package = next((name for name in ("lightning.pytorch", "pytorch_lightning") if name in sys.modules), "lightning")
    require("torch", package.partition(".")[0])
    base = import_module("lightning.pytorch" if package == "lightning" else package).Callback
    return type("SpotladderCallback", (_Hooks, base), {})()


class _Order:
    """The seed of the order of the examples, kept in the commits."""

    def __init__(self) -> None:
        import torch

        self.seed = torch.initial_seed()

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        self.seed = state["seed"]

    def set_epoch(self, loaders: list[Any], epoch: int) -> None:
        """Make the shuffle of these loaders, and the random state of their workers, a function of the epoch."""
        import torch

        for number, loader in enumerate(loaders):
            if not isinstance(loader, torch.utils.data.DataLoader) or _continues(loader):
                continue
            seed = (self.seed + epoch + (number << 32)) % 2**63
            loading.seed_batches(loader, seed)
            loader.generator = torch.Generator().manual_seed(seed)
            for part in (loader.sampler, loader.batch_sampler):
                if hasattr(part, "generator"):
                    part.generator = torch.Generator().manual_seed(seed)
                if callable(getattr(part, "set_epoch", None)):
                    part.set_epoch(epoch)


class _Hooks:
    """The hooks of the callback, without Lightning's base class."""

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        """Let the trainer restore the newest commit instead of `ckpt_path`."""
        if stage != "fit":
            return
        self._loop: FrameworkLoop = loop_of_current()
        trainer.callbacks = [self, *(other for other in trainer.callbacks if other is not self)]
        self._order, self._at, self._due, self._within_epoch = _Order(), 0, False, False
        self._restore_random: Callable[[], None] = randomness.keep()
        self._state = torch_state.State(order=self._order)
        if (found := self._loop.resume()) is None:
            return
        path, connector = found.merged() / FILE, trainer._checkpoint_connector  # noqa: SLF001 – no public name
        load = connector.resume_start

        def resume_start(_: Any = None, **options: Any) -> None:
            """Hyperparameters may have types of the program: allow them (Lightning 2.6 asks), the file is our own."""
            load(path, **{name: False if value is None else value for name, value in options.items()})

        connector.resume_start = resume_start

    def on_train_start(self, trainer: Any, module: Any) -> None:
        total = trainer.estimated_stepping_batches
        if total == float("inf") or (len(trainer.optimizers) > 1 and trainer.max_steps < 0):
            raise InvalidSpec("the number of steps is unknown: set max_steps", where="Trainer")
        if found := self._loop.found:
            self._state.restore(found)
            trainer._checkpoint_connector.__dict__.pop("resume_start", None)  # noqa: SLF001 – see setup
        self._to_position(trainer)
        if found:
            self._state.restore(found)  # The skipped batches have changed the random state.
            trainer.fit_loop._restarting = False  # noqa: SLF001 – else ReduceLROnPlateau skips the end of this epoch
            self._restore_random = randomness.keep()
        self._total = int(total)
        self._loop.begin(trainer.global_step, self._total, "use a new callback for each Trainer")
        _after(module, "on_train_batch_end", lambda: self._batch_ended(trainer))
        _after(module, "on_train_end", lambda: self._commit_if_due(trainer))

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        progress = trainer.fit_loop.epoch_progress
        progress.total.ready, progress.current.ready = progress.total.started, progress.current.started
        self._commit_if_due(trainer)  # The commit does not have the new epoch yet.
        progress.increment_ready()
        self._order.set_epoch(_loaders(trainer), trainer.current_epoch)

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        if self._within_epoch:  # Lightning has prepared a validation again, to skip it.
            self._within_epoch = False
            self._restore_random()

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        """A validation does not change the random state of the training: an attempt that resumes skips it."""
        self._restore_random()

    def teardown(self, trainer: Any, module: Any, stage: str) -> None:
        if stage == "fit":
            for hook in ("on_train_batch_end", "on_train_end"):
                vars(module).pop(hook, None)
            self._loop.close()

    def _batch_ended(self, trainer: Any) -> None:
        self._restore_random = randomness.keep()
        step = trainer.global_step
        if step == self._at:
            return  # The gradients of several batches are added up, and no checkpoint includes them.
        self._at, self._due = step, self._loop.job.should_commit(step)
        if not self._due:
            self._loop.ended(step)
        elif not _is_last(trainer) and step < self._total:
            self._commit_if_due(trainer)

    def _commit_if_due(self, trainer: Any) -> None:
        if self._due:
            self._due = False
            with self._loop.job.commit(self._at, numbers(trainer.callback_metrics)) as folder:
                self._save(trainer, folder)
            self._loop.ended(self._at)

    def _save(self, trainer: Any, folder: Path) -> None:
        trainer.save_checkpoint(folder / FILE, weights_only=False)
        if (folder / FILE).is_dir():
            raise InvalidSpec(
                "writes a checkpoint in parts, which the callback does not support: use state_dict_type='full'",
                where=type(trainer.strategy).__name__,
            )
        self._state.save(folder)

    def _to_position(self, trainer: Any) -> None:
        """Read the batches of the epoch that were trained before the commit."""
        self._at, loop, loaders = trainer.global_step, trainer.fit_loop, _loaders(trainer)
        progress = loop.epoch_loop.batch_progress
        read = progress.current.ready
        if read and _is_last(trainer):
            loop.reset_restart_stage()  # The next epoch begins, with its hooks.
            loop.epoch_loop.restarting = False
            read = 0
        self._within_epoch = read > 0
        if all(map(_continues, loaders)):
            return
        self._order.set_epoch(loaders, trainer.current_epoch)
        fetcher = loop._data_fetcher  # noqa: SLF001 – no public name
        iter(fetcher)  # Loader processes may have read in another order already.
        for _ in range(read):
            next(fetcher)
        fetcher.fetched -= read  # Lightning adds them.


def _after(module: Any, name: str, do: Callable[[], None]) -> None:
    """Call `do` after this hook of the module, which Lightning calls after those of all callbacks."""
    hook = getattr(module, name)

    def both(*given: Any, **named: Any) -> Any:
        result = hook(*given, **named)
        do()
        return result

    setattr(module, name, both)


def _is_last(trainer: Any) -> bool:
    """Whether the batch is the last one of its epoch."""
    progress = trainer.fit_loop.epoch_loop.batch_progress
    return bool(progress.is_last_batch or progress.current.ready >= trainer.num_training_batches)


def _loaders(trainer: Any) -> list[Any]:
    combined = trainer.fit_loop._combined_loader  # noqa: SLF001 – no public name
    return [] if combined is None else list(combined.flattened)


def _continues(loader: Any) -> bool:
    """Whether the loader stores its own position in Lightning's checkpoint."""
    return hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict")
