"""train.tensorflow: saving and restoring, rejected parts, reading the files with TensorFlow alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spotladder.errors import CheckpointCorrupt, InvalidSpec
from spotladder.train import writing
from spotladder.train.folder_watch import Watch
from spotladder.train.putback import put_back
from spotladder.train.tensorflow import State
from tests.train.builders import ManualClock, member

tf: Any = None
"""Imported for the first test, not while tests are collected: it takes each process of the test run 6 s of processor
time and 0.5 GB.
"""


@pytest.fixture(autouse=True, scope="module")
def _tensorflow() -> None:
    globals()["tf"] = pytest.importorskip("tensorflow")


def model_of(width: int = 3) -> Any:
    return tf.keras.Sequential(
        [tf.keras.Input((2,)), tf.keras.layers.Dense(width), tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(1)]
    )


def built(model: Any) -> Any:
    optimizer = tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5))
    optimizer.build(model.trainable_variables)
    return optimizer


def batches() -> Any:
    return iter(tf.data.Dataset.range(8).shuffle(8, seed=1).repeat().batch(2))


def test_everything_is_restored(tmp_path: Path) -> None:
    model, optimizer, data = model_of(), None, batches()
    optimizer = built(model)
    ones = [tf.ones_like(variable) for variable in model.trainable_variables]
    for _ in range(3):
        next(data)
        optimizer.apply_gradients(zip(ones, model.trainable_variables, strict=True))
    generator = tf.random.Generator.from_seed(5)
    generator.normal([3])
    State(model=model, optimizer=optimizer, data=data, generator=generator).save(tmp_path)
    drawn = random.random()

    model_2, data_2 = model_of(), batches()
    optimizer_2 = built(model_2)
    generator_2 = tf.random.Generator.from_seed(6)
    State(model=model_2, optimizer=optimizer_2, data=data_2, generator=generator_2).restore(tmp_path)

    assert random.random() == drawn
    assert optimizer_2.iterations.numpy() == 3
    assert float(optimizer_2.learning_rate) == float(optimizer.learning_rate) == pytest.approx(0.0125)
    assert next(data_2).numpy().tolist() == next(data).numpy().tolist()
    assert generator_2.normal([2]).numpy().tolist() == generator.normal([2]).numpy().tolist()
    for old, new in zip(model.variables + optimizer.variables, model_2.variables + optimizer_2.variables, strict=True):
        assert old.numpy().tolist() == new.numpy().tolist()


def test_the_seeds_of_random_layers_are_restored(tmp_path: Path) -> None:
    """tf.train.Checkpoint does not save them: a resumed run would drop other neurons than an uninterrupted one."""
    model, inputs = model_of(16), tf.ones((1, 2))
    model(inputs, training=True)
    State(model=model).save(tmp_path)
    again = model_of(16)
    State(model=again).restore(tmp_path)
    assert again(inputs, training=True).numpy().tolist() == model(inputs, training=True).numpy().tolist()


def test_tensorflow_alone_reads_the_files(tmp_path: Path) -> None:
    model = model_of()
    State(model=model, data=batches()).save(tmp_path)
    again = model_of()
    tf.train.Checkpoint(model=again).read(str(tmp_path / "model")).expect_partial().assert_existing_objects_matched()
    assert again.layers[0].kernel.numpy().tolist() == model.layers[0].kernel.numpy().tolist()


def test_only_rank_0_writes_replicated_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in ("0", "1"):
        monkeypatch.setenv("SPOTLADDER_RANK", rank)
        monkeypatch.setenv("SPOTLADDER_WORLD_SIZE", "2")
        (tmp_path / rank).mkdir()
        State(model=model_of(), data=batches()).save(tmp_path / rank)
    assert {file.name.split(".")[0] for file in (tmp_path / "0").iterdir()} == {"model", "rank-0"}
    assert {file.name.split(".")[0] for file in (tmp_path / "1").iterdir()} == {"rank-1"}


def test_other_ranks_write_nothing_in_a_replicated_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOTLADDER_RANK", "1")
    monkeypatch.setenv("SPOTLADDER_WORLD_SIZE", "2")
    with writing.deferred(tmp_path, replicated=True):
        State(model=model_of(), data=batches()).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_new_rank_restores_the_data_position_of_rank_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = batches()
    next(data)
    State(data=data).save(tmp_path)
    monkeypatch.setenv("SPOTLADDER_RANK", "1")
    monkeypatch.setenv("SPOTLADDER_WORLD_SIZE", "2")
    again = batches()
    State(data=again).restore(tmp_path)
    assert next(again).numpy().tolist() == next(data).numpy().tolist()


REFUSED: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "an optimizer that is not built": (lambda: {"opt": tf.keras.optimizers.SGD()}, "opt: is not built yet"),
    "a model without shapes": (
        lambda: {"net": tf.keras.Sequential([tf.keras.layers.Dense(1)])},
        "net: is not built yet",
    ),
    "something that is not TensorFlow's": (lambda: {"step": 3}, "step: tf.train.Checkpoint cannot track int"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unsupported_parts_are_rejected(case: str) -> None:
    parts, message = REFUSED[case]
    with pytest.raises(InvalidSpec, match=message):
        State(**parts())


def test_a_checkpoint_of_another_program_is_rejected(tmp_path: Path) -> None:
    State(model=model_of(3)).save(tmp_path)
    with pytest.raises(CheckpointCorrupt, match="do not match this program's parts"):
        State(model=model_of(4)).restore(tmp_path)
    with pytest.raises(CheckpointCorrupt, match="do not match this program's parts"):
        State(model=model_of(3), extra=tf.Variable(1.0)).restore(tmp_path)


def test_a_truncated_file_is_rejected(tmp_path: Path) -> None:
    State(model=model_of()).save(tmp_path)
    (tmp_path / "model.index").write_bytes(b"")
    with pytest.raises(CheckpointCorrupt):
        State(model=model_of()).restore(tmp_path)


def test_a_manager_continues_from_what_was_put_back(tmp_path: Path) -> None:
    first, out = member(tmp_path / "bucket"), tmp_path / "out"
    watch = Watch(out, first, first.commits, put_back(first, out), ManualClock())
    for value in (1.0, 2.0):
        tf.train.CheckpointManager(tf.train.Checkpoint(value=tf.Variable(value)), str(out), 2, "epoch").save(int(value))
    watch.look(ended=True)
    first.commits.wait()
    out.rename(tmp_path / "gone")
    start, value = put_back(member(tmp_path / "bucket", attempt=2), out), tf.Variable(0.0)
    assert start.path_in(out) == tf.train.latest_checkpoint(out)
    tf.train.Checkpoint(value=value).restore(start.path_in(out))
    assert value.numpy() == 2.0
