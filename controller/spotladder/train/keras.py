"""Keras: the only line that a script needs is `model.fit(…, callbacks=[train.keras.callback()])`.

The callback restores the newest commit when `fit` starts, and commits after a training step: at the job's interval, at
an eviction notice on any rank, and after the last step. A commit has the variables of the model and of its optimizer,
the random state, and the position in the data. At a notice `fit` ends with `Interrupted` (exit code 75).

A resumed epoch calls `on_train_batch_begin` and `on_train_batch_end` for all of its batches, but trains only those that
were not trained before the commit. With TensorFlow the data continues from its own saved position. With JAX and PyTorch
the batches are read again and skipped. For that the callback seeds the random generators of Python, NumPy and PyTorch
at the start of each epoch.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from spotladder.errors import InvalidSpec
from spotladder.extras import require
from spotladder.train import randomness
from spotladder.train.framework_loop import FrameworkLoop, loop_of_current
from spotladder.train.keras_state import restore_variables, save_variables, seed_generators


def callback() -> Any:
    """The callback for one `fit`. Raises EnvironmentFailure if Keras is not installed."""
    require("tensorflow", "keras")
    from keras.callbacks import Callback

    return type("SpotladderCallback", (_Hooks, Callback), {})()


class _Hooks:
    """The hooks of the callback, without Keras' base class."""

    model: Any
    params: dict[str, Any]

    def on_train_begin(self, logs: Any = None) -> None:
        model, self._steps = self.model, self.params["steps"]
        if not self._steps:
            raise InvalidSpec("the number of steps of an epoch is unknown: pass steps_per_epoch", where="fit")
        if not model.built:
            raise InvalidSpec("is not built yet, so nothing could be restored: call its build()", where="model")
        if not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        self._loop: FrameworkLoop = loop_of_current()
        found = self._loop.resume()
        self._start = found.step if found else -1
        self._at_once = int(model.steps_per_execution)
        self._data: Any = None
        self._replacement: Any = None
        model._initial_epoch = found.step // self._steps or None if found else None  # noqa: SLF001 – as Keras' own BackupAndRestore
        self._train = model.train_function
        model.train_function = self._trained
        if self._start >= self.params["epochs"] * self._steps:
            self._resume()  # No epoch is left, which would restore it.

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch, self._batch, self._replacement = epoch, 0, None
        if self._start < 0:
            self._start = epoch * self._steps  # The first start, perhaps with an `initial_epoch`.
        if epoch == self._start // self._steps:
            self._resume()
        if not _has_iterators():
            seed_generators(self._seed + epoch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        step = self._epoch * self._steps + min(batch + 1, self._steps)
        self._batch = batch + 1
        if step > self._start and self._loop.is_due(step):
            with self._loop.commit(step, logs or {}) as folder:
                self._save(folder)

    def on_train_end(self, logs: Any = None) -> None:
        self.model.train_function, self.model._initial_epoch = self._train, None  # noqa: SLF001 – see on_train_begin
        self._loop.close()

    def _trained(self, *state_and_data: Any) -> Any:
        """Train one step with these batches (TensorFlow: with this iterator), or skip it if it was trained before the
        commit. With JAX the state of the model comes first."""
        *state, self._data = state_and_data
        if self._epoch * self._steps + self._batch < self._start:
            if hasattr(self._data, "__next__") and not _has_iterators():  # JAX; PyTorch gets batches.
                for _ in range(self._at_once):
                    next(self._data, None)
            return ({}, *state) if state else {}
        if self._continue is not None:
            self._to_position(self._continue)
        self._data = self._data if self._replacement is None else self._replacement
        return self._train(*state, self._data)

    def _resume(self) -> None:
        """Restore the variables, and the seed of the epochs."""
        self._continue: Path | None = None
        self._seed = random.getrandbits(30)
        if (found := self._loop.found) is not None:
            self._continue = found.merged()
            self._seed = restore_variables(self.model, self._continue)
        remedy = "call fit once for each job, with the data of the commit"
        self._loop.begin(self._start, max(self._start, self.params["epochs"] * self._steps), remedy)

    def _to_position(self, folder: Path) -> None:
        """The first step after the commit: continue in the data and with the random state of the commit."""
        self._continue = None
        rank = self._loop.job.rank
        if _has_iterators():
            import tensorflow as tf

            saved = f"rank-{randomness.rank_in(folder, rank)}.data"
            tf.train.Checkpoint(data=self._data).read(str(folder / saved)).assert_consumed()
            if self._start % self._steps == 0:  # The saved iterator is at the end of its epoch.
                self._replacement = iter(self._data._dataset)  # noqa: SLF001 – Keras does not pass it on
        if _has_iterators() or self._start % self._steps:
            randomness.restore(folder, rank)

    def _save(self, folder: Path) -> None:
        rank = self._loop.job.rank
        if rank == 0:
            save_variables(self.model, folder, self._seed)  # With JAX, `model` brings the variables up to date.
        randomness.save(folder, rank)
        if _has_iterators():
            import tensorflow as tf

            tf.train.Checkpoint(data=self._data).write(str(folder / f"rank-{rank}.data"))


def _has_iterators() -> bool:
    """Whether Keras trains with TensorFlow, whose iterators can be saved."""
    from keras.backend import backend

    return str(backend()) == "tensorflow"
