"""JAX: saves a training program's state, one pytree, in a commit and restores it, in Orbax's format.

    state = {"params": params, "optimizer": optimizer_state, "key": jax.random.key(7)}
    with job.resume() as found:
        if found:
            state = train.jax.restore(found, like=state)
            start = found.step
    …
            with job.commit(step) as folder:
                train.jax.save(folder, state)

Leaves may be JAX arrays, random keys, NumPy arrays and numbers. Of an array over the devices of several processes, rank
0 writes it if it is replicated, as in data-parallel training; if it is sharded, each rank writes its shards, and
`restore` puts it together for any sharding and any number of processes. Each rank writes its process-local state (a
key, a position in the data). `state` in a commit's files is an Orbax checkpoint of the tree, with random keys as their
raw data: `orbax.checkpoint.PyTreeCheckpointer().restore(…)` reads it without spotladder. It has only the shape of an
array that is sharded over processes; `spotladder.train.shards` describes the files of the shards, and those of the
process-local state.

In a commit `save` copies the arrays to the host's memory, and they are written while the training continues.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from spotladder.errors import CheckpointCorrupt, InvalidSpec, first_line
from spotladder.extras import require
from spotladder.train import randomness, ranks, shards, writing
from spotladder.train.found import Found

Tree = TypeVar("Tree")

_SHARED = "state"

CONVERTED_AT_ONCE = 8
"""Maximum number of arrays that are converted for Orbax at the same time."""


def save(folder: Path, tree: Any) -> None:
    """Write this rank's part of a commit, with the random state of Python and NumPy. Every rank must call it.

    Raises InvalidSpec for sharded arrays in a commit with `replicated=True`, and for text.
    """
    import jax

    rank, wait = ranks.discover().rank, not writing.is_deferred(folder)
    raw = jax.tree_util.tree_map(_raw, tree)
    leaves = _named(raw)
    if text := [name for name, leaf in leaves.items() if isinstance(leaf, str | bytes)]:
        raise InvalidSpec("is text, not an array or a number, and could not be restored: leave it out", path=text[0])
    sharded = [name for name, leaf in leaves.items() if _is_sharded(leaf)]
    if sharded and writing.is_replicated(folder):
        raise InvalidSpec("is sharded over processes: commit it without replicated=True", path=sharded[0])
    blocks = {name: _blocks(leaves[name], wait=wait) for name in sharded}
    local = jax.tree_util.tree_map(lambda leaf: _local(leaf, wait=wait), raw)
    jax.block_until_ready((local, [list(array.blocks.values()) for array in blocks.values()]))
    if rank == 0:
        writing.write(folder, lambda: _checkpointer().save((folder / _SHARED).absolute(), _as_numpy(local)))
    else:  # Orbax writes NumPy's arrays and numbers in process 0 only.
        own = {name: _whole(leaf) for name, leaf in _named(local).items() if _is_own(leaves[name])}
        writing.write(folder, lambda: shards.write(folder, f"rank-{rank}", own))
    if blocks:
        writing.write(folder, lambda: shards.write(folder, f"shards-{rank}", blocks))
    randomness.save(folder, rank)


def restore(found: Found | Path, like: Tree) -> Tree:
    """The tree that `save` wrote. Each leaf has the type, the devices and the sharding of the corresponding leaf of
    `like`. Of sharded arrays, only the parts for the devices of this process are read.

    A rank that the commit does not have gets rank 0's state. Raises CheckpointCorrupt if the files are of another
    tree, or if those of a rank that wrote shards are missing.
    """
    import jax

    folder = (found.to_read() if isinstance(found, Found) else found).absolute()
    rank = ranks.discover().rank
    saved = _read(folder / _SHARED, jax.tree_util.tree_map(lambda leaf: _local(_raw(leaf)), like))
    values = _named(saved) | shards.read(folder, f"rank-{rank}") | shards.read(folder, "shards-*")
    placed = [_placed(name, values[name], leaf) for name, leaf in _named(like).items()]
    randomness.restore(folder, rank)
    restored: Tree = jax.tree_util.tree_structure(like).unflatten(placed)
    return restored


def trainer(loop: Callable[..., Any], **arguments: Any) -> Any:
    """Ray's `JaxTrainer(loop, **arguments)` that also works on CPUs, where Ray's own does not connect the workers.

    In every worker, `jax.distributed` is initialized before `loop` is called, so `jax.devices()` lists the devices of
    all workers.
    """
    require("jax", "jax")
    scaling = arguments.get("scaling_config")
    if scaling is not None and (scaling.use_gpu or getattr(scaling, "use_tpu", False)):
        from ray.train.v2.jax import JaxTrainer

        return JaxTrainer(loop, **arguments)
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    from spotladder.train.rayconnect import Connected

    return DataParallelTrainer(loop, backend_config=Connected(_join), **arguments)


def _join(addresses: list[str], rank: int) -> None:
    """Join the `jax.distributed` job of the workers on CPUs, whose coordinator is rank 0."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(addresses[0], len(addresses), rank)


def _raw(leaf: Any) -> Any:
    """The leaf; for a random key, its raw data."""
    import jax

    return jax.random.key_data(leaf) if isinstance(leaf, jax.Array) and _is_key(leaf) else leaf


def _local(leaf: Any, *, wait: bool = True) -> Any:
    """The value of a leaf that Orbax saves: this process's copy on the host, or the shape of a sharded array.

    With `wait=False` it is a copy that stays as it is: the program may change a NumPy array, and donate the memory of a
    JAX array.
    """
    import jax
    import numpy as np

    if isinstance(leaf, np.ndarray):
        return leaf if wait else leaf.copy()
    if not isinstance(leaf, jax.Array):
        return leaf
    if _is_sharded(leaf):
        return np.array(leaf.shape)
    here = leaf.addressable_data(0) if leaf.is_fully_replicated else leaf
    return here if wait else _pinned(here)


def _whole(leaf: Any) -> shards.Blocks:
    import jax
    import numpy as np

    return shards.whole(leaf if isinstance(leaf, jax.Array) else np.asarray(leaf))


def _blocks(array: Any, *, wait: bool) -> shards.Blocks:
    """The shards of an array that this process writes: each shard is written once, whatever the number of its
    replicas. With `wait=False` they are copies, as those of `_local`."""
    blocks = {
        tuple(part.indices(size)[0] for part, size in zip(shard.index, array.shape, strict=True)): (
            shard.data if wait else _pinned(shard.data)
        )
        for shard in array.addressable_shards
        if shard.replica_id == 0
    }
    return shards.Blocks(array.shape, array.dtype, blocks)


def _pinned(array: Any) -> Any:
    """A copy of the array in pinned memory of the host, which JAX uses again for later copies; an ordinary copy if JAX
    has no such memory, or not enough of it. It may not be complete yet."""
    import jax
    import numpy as np

    try:
        return jax.device_put(array, array.sharding.with_memory_kind("pinned_host"), may_alias=False)
    except (ValueError, NotImplementedError, RuntimeError):
        return np.array(array)


def _as_numpy(tree: Any) -> Any:
    """The tree with NumPy arrays in place of JAX's, converted in parallel: most of the time goes to the pages of new
    memory."""
    import jax
    import numpy as np

    leaves, structure = jax.tree_util.tree_flatten(tree)
    with ThreadPoolExecutor(CONVERTED_AT_ONCE) as pool:
        return structure.unflatten(
            pool.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, leaves)
        )


def _is_key(leaf: Any) -> bool:
    import jax

    return bool(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _is_sharded(leaf: Any) -> bool:
    """Whether no process has the whole array."""
    import jax

    return isinstance(leaf, jax.Array) and not (leaf.is_fully_addressable or leaf.is_fully_replicated)


def _is_own(leaf: Any) -> bool:
    """Whether the leaf's value may differ between processes."""
    import jax

    return not isinstance(leaf, jax.Array) or leaf.is_fully_addressable


def _placed(name: str, value: Any, like: Any) -> Any:
    """A restored value converted to the type and the devices of `like`."""
    import jax
    import numpy as np

    stored = isinstance(value, shards.Stored)
    if not isinstance(like, jax.Array):
        value = value.whole() if stored else value
        return type(like)(value) if isinstance(like, (bool, int, float, complex)) else value
    key = _is_key(like)
    value = value if stored else np.asarray(value)
    expected = jax.eval_shape(jax.random.key_data, like) if key else like
    if (value.shape, value.dtype) != (expected.shape, expected.dtype):
        raise CheckpointCorrupt(
            f"{_SHARED}{name}: {value.dtype}{list(value.shape)} was committed, the program expects "
            f"{expected.dtype}{list(expected.shape)}: was it changed since the commit?"
        )
    array = jax.make_array_from_callback(value.shape, like.sharding, lambda index: value[index])
    return jax.random.wrap_key_data(array, impl=jax.random.key_impl(like)) if key else array


def _named(tree: Any) -> dict[str, Any]:
    import jax

    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


def _checkpointer() -> Any:
    """An Orbax checkpointer for this process alone: the commit combines the folders of the ranks."""
    require("jax", "orbax")
    import jax
    import orbax.checkpoint as orbax

    me = jax.process_index()
    alone = orbax.options.MultiprocessingOptions(
        primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"rank-{me}"
    )
    # Compression takes longer than the write, and makes random mantissas of weights little smaller.
    handler = orbax.PyTreeCheckpointHandler(multiprocessing_options=alone, use_compression=False)
    return orbax.Checkpointer(handler, multiprocessing_options=alone)


def _read(folder: Path, like: Any) -> Any:
    """An Orbax checkpoint as host values, in the structure of `like`."""
    import jax
    import numpy as np
    import orbax.checkpoint as orbax

    try:
        wanted = jax.tree_util.tree_map(lambda _: orbax.RestoreArgs(restore_type=np.ndarray), like)
        return _checkpointer().restore(folder, args=orbax.args.PyTreeRestore(item=like, restore_args=wanted))
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise CheckpointCorrupt(
            f"{folder.name}: these files do not match this program's tree ({first_line(error)}): was it changed since "
            "the commit?"
        ) from error
