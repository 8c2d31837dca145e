"""TensorFlow: saves and restores the state of a training program in `tf.train.Checkpoint`s.

    state = train.tensorflow.State(model=model, optimizer=optimizer, data=iter(dataset))
    with job.resume() as found:
        if found:
            state.restore(found)
            start = found.step
    …
            with job.commit(step) as folder:
                state.save(folder)

Rank 0 writes the state that all ranks share (models, optimizers with their learning-rate schedules, `tf.Variable`s,
generators) into `model.*`. Each rank writes its position in the data (`tf.data` iterators) and the random state of
Python and NumPy into `rank-N.*`. Both are plain `tf.train.Checkpoint`s that TensorFlow reads without spotladder. They
include the seeds of random layers (Dropout …) and the metrics of a Keras model, which its own checkpoint leaves out.
In a commit with `replicated=True` only rank 0 writes.

Under `MultiWorkerMirroredStrategy`, give each rank its own shard as a plain iterator (`Dataset.shard(size, rank)`),
not a distributed dataset: TensorFlow cannot save the position of the latter.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spotladder.errors import CheckpointCorrupt, InvalidSpec, first_line
from spotladder.extras import require
from spotladder.train import randomness, ranks, writing
from spotladder.train.found import Found

_SHARED = "model"


class State:
    """The named parts of a training program: anything that `tf.train.Checkpoint` tracks.

    Build optimizers first (`optimizer.build(model.trainable_variables)`), so that their variables exist.
    """

    def __init__(self, **parts: Any) -> None:
        require("tensorflow", "tensorflow")
        import tensorflow as tf

        for name, part in parts.items():
            if not getattr(part, "built", True):
                raise InvalidSpec(
                    "is not built yet, so nothing could be restored into it: call its build() before State()", path=name
                )
            if not isinstance(part, tf.__internal__.tracking.Trackable):
                raise InvalidSpec(
                    f"tf.train.Checkpoint cannot track {type(part).__name__}: pass a Keras or TensorFlow object",
                    path=name,
                )
        own = {name: part for name, part in parts.items() if isinstance(part, tf.data.Iterator)}
        shared = {name: part for name, part in parts.items() if name not in own}
        shared |= {f"{name}_untracked": left for name, part in shared.items() if (left := _untracked(part))}
        self._rank = ranks.discover().rank
        self._shared = tf.train.Checkpoint(**shared) if shared else None
        self._own = tf.train.Checkpoint(**own) if own else None

    def save(self, folder: Path) -> None:
        """Write this rank's part of a commit. Every rank must call it."""
        if self._shared is not None and self._rank == 0:
            self._shared.write(str(folder / _SHARED))
        elif self._shared is not None:
            # Reading a variable that each replica updates is a collective: all ranks write, one copy is kept.
            with tempfile.TemporaryDirectory(prefix="spotladder-replica-") as discarded:
                self._shared.write(str(Path(discarded) / _SHARED))
        if self._rank > 0 and writing.is_replicated(folder):
            return
        if self._own is not None:
            self._own.write(str(folder / f"rank-{self._rank}"))
        randomness.save(folder, self._rank)

    def restore(self, found: Found | Path) -> None:
        """Restore all parts from a commit, or from a folder with the files of all ranks.

        A rank that the commit does not have continues from rank 0's position in the data. Raises CheckpointCorrupt if
        the parts or their shapes differ from the saved ones.
        """
        folder = found.to_read() if isinstance(found, Found) else found
        mine = f"rank-{randomness.rank_in(folder, self._rank)}"
        for checkpoint, name in ((self._shared, _SHARED), (self._own, mine)):
            if checkpoint is not None:
                _read(checkpoint, folder / name)
        randomness.restore(folder, self._rank)


def trainer(loop: Callable[..., Any], **arguments: Any) -> Any:
    """Ray's `TensorflowTrainer(loop, **arguments)` with a faster start: only the workers load TensorFlow.

    With Ray's own trainer, the driver and its controller also load TensorFlow at the start of every attempt, one after
    the other, for about 5 s each. The workers get the same TF_CONFIG with the addresses of all workers.
    """
    require("tensorflow", "tensorflow")
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    from spotladder.train.rayconnect import Connected

    return DataParallelTrainer(loop, backend_config=Connected(_announce), **arguments)


def _announce(workers: list[str], rank: int) -> None:
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})


def _untracked(part: Any) -> list[Any]:
    """The variables of a Keras model that TensorFlow does not track as weights: seeds and metrics."""
    if not hasattr(part, "weights"):
        return []
    tracked = {id(variable) for variable in part.weights}
    return [variable.value for variable in part.variables if id(variable) not in tracked]


def _read(checkpoint: Any, prefix: Path) -> None:
    import tensorflow as tf

    try:
        checkpoint.read(str(prefix)).assert_consumed()
    except (tf.errors.OpError, AssertionError, ValueError) as error:
        raise CheckpointCorrupt(
            f"{prefix.name}: these files do not match this program's parts ({first_line(error)}): was it changed "
            "since the commit?"
        ) from error
