"""Commits and verified resumes of a state in the host's memory, compared with the frameworks' own checkpoints of the
same state, which verify nothing.

Both take turns in one run. The commit log is a folder, and all files are on the file system of TMPDIR.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from spotladder import train
from spotladder.train.session import Job
from tests.bench import rows
from tests.bench.bench_log import in_turn
from tests.bench.bench_train import member
from tests.bench.rows import Row

MIB = 1 << 20
TENSORS = 64
ROUNDS = 5

RESUME_GOAL = 1.15
COMMIT_GOAL = 1 / 0.9
"""The time of a commit that writes 0.9 times the bytes per second of the framework."""


def measure(mib: int) -> Sequence[Row]:
    with tempfile.TemporaryDirectory(prefix="spotladder-bench-") as name:
        folder = Path(name)
        return [*with_torch(folder / "torch", mib), *with_jax(folder / "jax", mib)]


def with_torch(folder: Path, mib: int) -> list[Row]:
    import torch

    stock = folder / "stock.pt"
    model = torch.nn.ParameterList(torch.rand(mib * MIB // TENSORS // 4) for _ in range(TENSORS))
    state = train.torch.State(model=model)

    def load() -> None:
        model.load_state_dict(torch.load(stock))

    return compared(
        f"PyTorch, {mib / 1024:g} GiB:",
        folder / "log",
        save=state.save,
        restore=state.restore,
        write=("torch.save", lambda: torch.save(model.state_dict(), stock)),
        load=("torch.load, not verified", load),
    )


def with_jax(folder: Path, mib: int) -> list[Row]:
    import jax
    import orbax.checkpoint as orbax

    keys = jax.random.split(jax.random.key(7), TENSORS)
    tree = [jax.random.uniform(key, (mib * MIB // TENSORS // 4,)) for key in keys]
    arguments = jax.tree.map(lambda leaf: orbax.ArrayRestoreArgs(sharding=leaf.sharding), tree)
    stock = (folder / "stock").absolute()

    def write() -> None:
        with orbax.Checkpointer(orbax.PyTreeCheckpointHandler()) as checkpointer:
            checkpointer.save(stock, tree, force=True)

    def load() -> None:
        with orbax.Checkpointer(orbax.PyTreeCheckpointHandler()) as checkpointer:
            jax.block_until_ready(checkpointer.restore(stock, item=tree, restore_args=arguments))

    return compared(
        f"JAX, {mib / 1024:g} GiB:",
        folder / "log",
        save=lambda to: train.jax.save(to, tree),
        restore=lambda found: jax.block_until_ready(train.jax.restore(found, like=tree)),
        write=("Orbax, synchronous", write),
        load=("Orbax, not verified", load),
        commit_goal=COMMIT_GOAL,
    )


def compared(
    what: str,
    log: Path,
    *,
    save: Callable[[Path], object],
    restore: Callable[[Any], object],
    write: tuple[str, Callable[[], object]],
    load: tuple[str, Callable[[], object]],
    commit_goal: float | None = None,
) -> list[Row]:
    """Each pair of times is that of a round, so that other load on the machine affects both alike."""
    log.mkdir(parents=True)
    job, attempts = Job(member(log, KEEP="1")), count(2)

    def commit(step: int) -> None:
        with job.commit(step + 1) as folder:
            save(folder)
        job.flush()

    def resume(_: int) -> None:
        again = Job(member(log, ATTEMPT=str(next(attempts))))
        with again.resume() as found:
            assert found is not None
            restore(found)
        again.close()

    commits = in_turn(commit, lambda _: write[1](), ROUNDS)
    job.close()
    resumes = in_turn(resume, lambda _: load[1](), ROUNDS)
    shutil.rmtree(log.parent)
    return [
        row(f"{what} commit", commits, write[0], commit_goal),
        row(f"{what} verified resume", resumes, load[0], RESUME_GOAL),
    ]


def row(what: str, times: tuple[list[float], list[float]], compared_with: str, goal: float | None) -> Row:
    mine, other = times
    ratio = median(one / two for one, two in zip(mine, other, strict=True))
    name, met = ("", None) if goal is None else (f"≤ {goal:.2f}×", ratio <= goal)
    return Row(what, ratio * median(other), "s", compared_with, median(other), name, met)


if __name__ == "__main__":
    rows.main(
        measure,
        "Commit and resume beside the frameworks",
        note=f"Measured with {os.cpu_count()} processors and all files on the file system of TMPDIR.",
        mib=512,
    )
