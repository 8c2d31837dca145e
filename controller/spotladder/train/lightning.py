"""PyTorch Lightning: the only line that a script needs is `Trainer(callbacks=[train.lightning.callback()])`.

The callback restores the newest commit when `fit` starts, whatever `ckpt_path` is, and commits after a training step:
at the job's interval, at an eviction notice on any rank, and after the last step. A commit is Lightning's own
checkpoint, with the random state of each rank. At a notice `fit` ends with `Interrupted` (exit code 75).

A commit follows the hooks of the other callbacks and of the module. That of the last step of an epoch follows the
validation and the hooks of the end of the epoch, and the last one `on_train_end`. A resumed epoch reads and skips the
batches that were trained, unless the loader stores its own position, as torchdata's StatefulDataLoader does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from spotladder.errors import InvalidSpec
from spotladder.extras import require
from spotladder.train import randomness
from spotladder.train import torch as torch_state
from spotladder.train.framework_loop import FrameworkLoop, loop_of_current
from spotladder.train.lightning_position import begin_epoch, is_last, to_position
from spotladder.train.loading import EpochOrder

FILE = "lightning.ckpt"


def callback() -> Any:
    """The callback for one Trainer. Raises EnvironmentFailure if Lightning is not installed."""
    package = next((name for name in ("lightning.pytorch", "pytorch_lightning") if name in sys.modules), "lightning")
    require("torch", package.partition(".")[0])
    base = import_module("lightning.pytorch" if package == "lightning" else package).Callback
    return type("SpotladderCallback", (_Hooks, base), {})()


class _Hooks:
    """The hooks of the callback, without Lightning's base class."""

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        """Let the trainer restore the newest commit instead of `ckpt_path`."""
        if stage != "fit":
            return
        self._loop: FrameworkLoop = loop_of_current()
        trainer.callbacks = [self, *(other for other in trainer.callbacks if other is not self)]
        self._order = EpochOrder()
        self._restore_random: Callable[[], None] = randomness.keep()
        self._state = torch_state.State(order=self._order)
        if (found := self._loop.resume()) is None:
            return
        path, connector = found.merged() / FILE, trainer._checkpoint_connector  # noqa: SLF001 – no public name
        load = connector.resume_start

        def resume_start(_: Any = None, **options: Any) -> None:
            load(path, **dict.fromkeys(options, False))  # weights_only=False: the commit may have the program's types.

        connector.resume_start = resume_start

    def on_train_start(self, trainer: Any, module: Any) -> None:
        total = trainer.estimated_stepping_batches
        if total == float("inf") or (len(trainer.optimizers) > 1 and trainer.max_steps < 0):
            raise InvalidSpec("the number of steps is unknown: set max_steps", where="Trainer")
        if found := self._loop.found:
            self._state.restore(found)
            trainer._checkpoint_connector.__dict__.pop("resume_start", None)  # noqa: SLF001 – see setup
        self._at = trainer.global_step
        self._within_epoch = to_position(trainer, self._order)
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
        begin_epoch(trainer, self._order)

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
        self._at = step
        if self._loop.is_due(step) and not is_last(trainer) and step < self._total:
            self._commit_if_due(trainer)

    def _commit_if_due(self, trainer: Any) -> None:
        if not self._loop.due:
            return
        with self._loop.commit(self._at, trainer.callback_metrics) as folder:
            trainer.save_checkpoint(folder / FILE, weights_only=False)
            if (folder / FILE).is_dir():
                raise InvalidSpec(
                    "writes a checkpoint in parts, which the callback does not support: use state_dict_type='full'",
                    where=type(trainer.strategy).__name__,
                )
            self._state.save(folder)


def _after(module: Any, name: str, do: Callable[[], None]) -> None:
    """Call `do` after this hook of the module, which Lightning calls after those of all callbacks."""
    hook = getattr(module, name)

    def both(*given: Any, **named: Any) -> Any:
        result = hook(*given, **named)
        do()
        return result

    setattr(module, name, both)
