"""train.jax: saving and restoring trees, reading them with Orbax alone, trees of other programs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from spotladder.errors import CheckpointCorrupt, InvalidSpec
from spotladder.train.jax import _as_numpy, _pinned, restore, save
from tests.frameworks.test_keras import run_with
from tests.train import builders

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
pytestmark = pytest.mark.frameworks

OPTIMIZER = optax.adam(optax.cosine_decay_schedule(0.1, 10))


def tree(seed: int) -> dict[str, Any]:
    key = jax.random.key(seed)
    params = {"w": jax.random.normal(key, (3, 2)), "b": [jax.numpy.full(2, seed, "bfloat16")]}
    return {
        "params": params,
        "optimizer": OPTIMIZER.init(params),
        "key": jax.random.split(key),
        "old key": jax.random.PRNGKey(seed),
        "epoch": seed,
        "best": seed / 3,
        "counts": __import__("numpy").arange(3) * seed,
        "nothing": None,
    }


def same(one: Any, other: Any) -> bool:
    def plain(leaf: Any) -> Any:
        typed = isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return (
            type(leaf),
            getattr(leaf, "dtype", None),
            jax.numpy.asarray(jax.random.key_data(leaf) if typed else leaf),
        )

    leaves = [[plain(leaf) for leaf in jax.tree.leaves(made)] for made in (one, other)]
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        a[:2] == b[:2] and (a[2] == b[2]).all() for a, b in zip(*leaves, strict=True)
    )


def test_everything_is_restored(tmp_path: Path) -> None:
    made = tree(5)
    save(tmp_path, made)
    drawn = random.random()
    again = restore(tmp_path, like=tree(0))
    assert random.random() == drawn
    assert same(again, made)
    assert not same(again, tree(0))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "int8", "bool"])
def test_a_copy_in_pinned_memory_is_the_array(dtype: str) -> None:
    array = jax.numpy.arange(12).reshape(3, 4).astype(dtype)
    copy = _pinned(array)
    assert copy.sharding.memory_kind == "pinned_host"
    assert (copy.dtype, copy.shape) == (array.dtype, array.shape)
    expected = _as_numpy([array, 3])
    array.delete()
    assert _as_numpy([copy, 3])[0].tobytes() == expected[0].tobytes()


def test_without_pinned_memory_the_copy_is_an_ordinary_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED: out of host memory")

    monkeypatch.setattr(jax, "device_put", full)
    array = jax.numpy.ones(3)
    copy = _pinned(array)
    assert type(copy).__module__ == "numpy"
    assert (copy == array).all()


def test_a_commit_has_the_state_of_its_block(tmp_path: Path) -> None:
    """The files are written after the block, while the program donates its arrays and changes NumPy's."""
    job, made, expected = builders.job(tmp_path), tree(5), tree(5)
    with job.commit(1) as folder:
        save(folder, made)
        assert [file.name for file in folder.iterdir()] == ["rank-0.random.json"]
    made["counts"] += 7
    jax.jit(lambda params: jax.tree.map(jax.numpy.zeros_like, params), donate_argnums=0)(made["params"])
    job.flush()
    job.close()
    with builders.job(tmp_path, attempt=2).resume() as found:
        assert found is not None
        assert same(restore(found, like=tree(0)), expected)


def test_a_restored_tree_can_be_trained(tmp_path: Path) -> None:
    made = tree(5)
    save(tmp_path, made)
    again = restore(tmp_path, like=made)
    change, _ = OPTIMIZER.update(again["params"], again["optimizer"])
    assert jax.random.normal(again["key"][0]) == jax.random.normal(made["key"][0])
    assert jax.tree.structure(change) == jax.tree.structure(made["params"])


def test_orbax_alone_reads_the_files(tmp_path: Path) -> None:
    import orbax.checkpoint as orbax

    made = tree(5)
    save(tmp_path, made)
    read = orbax.PyTreeCheckpointer().restore((tmp_path / "state").absolute())
    assert (read["params"]["w"] == made["params"]["w"]).all()
    assert (read["key"] == jax.random.key_data(made["key"])).all()
    assert read["epoch"] == 5


def test_leaves_of_one_process_are_restored_per_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank restores its own leaves; a rank that wrote none gets those of rank 0."""
    save(tmp_path, tree(5))
    for rank in ("1", "2"):
        monkeypatch.setenv("SPOTLADDER_RANK", rank)
        monkeypatch.setenv("SPOTLADDER_WORLD_SIZE", "3")
        if rank == "1":
            save(tmp_path, tree(6))
        assert same(restore(tmp_path, like=tree(0)), tree(6 if rank == "1" else 5))


CHANGES: dict[str, tuple[Any, str]] = {
    "one more leaf": (lambda made: {**made, "more": 1}, "do not match this program's tree"),
    "one less": (lambda made: {k: v for k, v in made.items() if k != "key"}, "do not match this program's tree"),
    "another shape": (
        lambda made: {**made, "old key": jax.numpy.zeros(3, "uint32")},
        r"state\['old key'\]: uint32\[2\]",
    ),
    "another type": (lambda made: {**made, "old key": jax.numpy.zeros(2)}, "the program expects float32"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_checkpoint_of_another_program_is_rejected(case: str, tmp_path: Path) -> None:
    change, message = CHANGES[case]
    save(tmp_path, tree(5))
    with pytest.raises(CheckpointCorrupt, match=message):
        restore(tmp_path, like=change(tree(0)))


@pytest.mark.parametrize("text", ["adam", b"adam"])
def test_a_text_is_not_saved_because_it_could_not_be_restored(tmp_path: Path, text: Any) -> None:
    with pytest.raises(InvalidSpec, match=r"\['name'\]: is text, not an array or a number"):
        save(tmp_path, {"name": text, "x": 1})


def test_a_folder_without_a_checkpoint_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(CheckpointCorrupt):
        restore(tmp_path, like=tree(0))


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_keras(backend: str) -> None:
    run_with(backend)
