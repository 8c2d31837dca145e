"""One of several processes whose state is sharded over all of their devices, two for each process.

`python -m tests.frameworks.sharded_jax PORT [lost]` with the environment of a rank: resumes, compares the state with
what was committed, and commits the next step. With `lost`, rank 1 is killed in the commit after that one.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DEVICES = 2

SPECS: dict[str, tuple[Any, ...]] = {
    "rows": (("processes", "devices"),),
    "blocks": ("devices", "processes"),
    "columns": (None, "processes"),
    "replicas": (None, "devices"),
    "equal": (),
    "key": ("processes",),
}
"""How the arrays are sharded over the mesh. The blocks of `replicas` are those of process 0."""

Place = Callable[[str, Any], Any]


def state(step: int, place: Place, rank: int = 0) -> dict[str, Any]:
    """The program's state after a step. `place` makes JAX's array of this name. `own` differs between ranks."""
    import jax

    numbers = np.arange(144).reshape(12, 12) % 29 + step
    params = {
        "rows": numbers.astype("float32"),
        "blocks": numbers.astype("bfloat16"),
        "columns": numbers.astype("int8"),
        "replicas": numbers.astype("float8_e4m3fn"),
        "equal": numbers.astype("float32"),
    }
    return {
        "params": {name: place(name, value) for name, value in params.items()},
        "keys": jax.random.wrap_key_data(place("key", numbers[:, :2].astype("uint32"))),
        "step": step,
        "own": {"counts": np.arange(3) * step + rank, "key": jax.random.key(rank), "share": rank / 3},
        "nothing": None,
    }


def same(one: Any, other: Any) -> bool:
    """Whether this process has the same bits of both trees, with the same types and shardings."""
    import jax

    def parts(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array):
            return type(leaf), np.asarray(leaf).tobytes()
        key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        data = jax.random.key_data(leaf) if key else leaf
        return (
            str(leaf.dtype),
            leaf.shape,
            [(str(shard.index), np.asarray(shard.data).tobytes()) for shard in data.addressable_shards],
        )

    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        parts(a) == parts(b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def lose_rank_1(job: Any, step: int, tree: Any) -> None:
    """Kill rank 1 when it has written its part of the commit. Rank 0 ends as soon as it knows."""
    from spotladder import train
    from spotladder.train.interruption import RankLost
    from spotladder.train.membership import leave_at_once

    try:
        with job.commit(step) as folder:
            train.jax.save(folder, tree)
            if job.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        job.flush()
    except RankLost:
        leave_at_once(0)  # At its normal end JAX would wait for the lost process.
    raise AssertionError("the commit without rank 1 must fail")


def refuse_replicated(tree: Any) -> None:
    from spotladder.errors import InvalidSpec
    from spotladder.train import writing
    from spotladder.train.jax import save

    with tempfile.TemporaryDirectory() as folder, writing.deferred(Path(folder), replicated=True):
        try:
            save(Path(folder), tree)
        except InvalidSpec as error:
            assert "is sharded over processes: commit it without" in str(error)  # noqa: PT017 – no pytest here
        else:
            raise AssertionError("sharded arrays in a replicated commit must be refused")


def main(port: int, *, lost: bool) -> None:
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from spotladder import train
    from spotladder.train.ranks import discover
    from tests.frameworks.rank import connect

    world = discover()
    jax.config.update("jax_num_cpu_devices", DEVICES)
    connect("jax", world.rank, world.size, port)
    mesh = Mesh(np.array(jax.devices()).reshape(world.size, DEVICES), ("processes", "devices"))

    def place(name: str, value: Any) -> Any:
        sharding = NamedSharding(mesh, PartitionSpec(*SPECS[name]))
        return jax.make_array_from_callback(value.shape, sharding, lambda part: value[part])

    job, start = train.current(), 0
    with job.resume() as found:
        if found:
            start = found.step
            rank = world.rank if world.rank in found.ranks else 0
            assert same(train.jax.restore(found, like=state(0, place)), state(start, place, rank))
            assert not same(state(0, place), state(start, place))
    refuse_replicated(state(start, place))
    with job.commit(start + 1) as folder:
        train.jax.save(folder, state(start + 1, place, world.rank))
    job.flush()
    print(f"resumed from {start}", flush=True)
    if lost:
        lose_rank_1(job, start + 2, state(start + 2, place, world.rank))


if __name__ == "__main__":
    main(int(sys.argv[1]), lost="lost" in sys.argv)
