"""How long a commit of a state on a GPU blocks the step, compared with the frameworks' own checkpoints of the same
state in the same run. tests/bench/bench_resume.py has whole commits and resumes.

A step keeps the GPU busy with matrix products and changes the whole state. The commit log is a folder, and all files
are on the disk of TMPDIR.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from spotladder import train
from spotladder.train.session import Job
from tests.bench import rows
from tests.bench.bench_train import member, seconds
from tests.bench.rows import Row

MIB = 1 << 20
TENSORS = 64
ROUNDS = 3
STEPS = 20
"""Steps between two commits."""

GOAL = 0.25


def measure(mib: int) -> Sequence[Row]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # Two frameworks use this GPU.
    return [row for measured in (with_torch, with_jax) for row in in_a_folder(measured, mib)]


def in_a_folder(measured: Callable[[Path, int], list[Row]], mib: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="spotladder-bench-") as folder:
        return measured(Path(folder), mib)


def with_torch(folder: Path, mib: int) -> list[Row]:
    import torch
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.staging import BlockingAsyncStager

    torch.manual_seed(7)
    width = mib * MIB // TENSORS // 4
    model = torch.nn.ParameterList(torch.rand(width, device="cuda") for _ in range(TENSORS))
    state, factors = train.torch.State(model=model), torch.rand(2, 2048, 2048, device="cuda")
    stager = BlockingAsyncStager(cache_staged_state_dict=True)

    def step() -> None:
        for _ in range(20):
            factors[0] @ factors[1]
        with torch.no_grad():
            torch._foreach_add_(list(model), 1e-3)  # one kernel, as in an optimizer
        torch.cuda.synchronize()

    def stock() -> float:
        return seconds(lambda: torch.save(model.state_dict(), folder / "stock.pt"))

    def peer() -> float:
        writer = checkpoint.FileSystemWriter(folder / "peer")
        began = time.perf_counter()
        saving = checkpoint.async_save({"model": model.state_dict()}, storage_writer=writer, async_stager=stager)
        blocked = time.perf_counter() - began
        saving.result()
        return blocked

    mine = blocked(folder / "log", step, state.save)
    return compared(f"PyTorch, {mib / 1024:g} GiB", mine, ("torch.save", stock), ("DCP async_save", peer), folder)


def with_jax(folder: Path, mib: int) -> list[Row]:
    import jax
    import orbax.checkpoint as orbax

    @jax.jit
    def make(key: Any) -> Any:
        keys = jax.random.split(key, TENSORS)
        return [jax.random.uniform(one, (mib * MIB // TENSORS // 4,)) for one in keys]

    @jax.jit
    def update(tree: Any, factor: Any) -> Any:
        for _ in range(20):
            factor = factor @ factor / 1024
        return jax.tree.map(lambda leaf: leaf + 1e-3, tree), factor

    tree, factor = make(jax.random.key(7)), jax.random.uniform(jax.random.key(8), (2048, 2048))

    def step() -> None:
        nonlocal tree
        tree, _ = jax.block_until_ready(update(tree, factor))

    def fresh() -> Any:
        """The tree without a copy of it on the host: JAX keeps such copies."""
        return jax.block_until_ready(jax.tree.map(lambda leaf: leaf + 0, tree))

    def stock() -> float:
        content = fresh()
        with orbax.Checkpointer(orbax.PyTreeCheckpointHandler()) as checkpointer:
            return seconds(lambda: checkpointer.save((folder / "stock").absolute(), content, force=True))

    def peer() -> float:
        content = fresh()
        with orbax.AsyncCheckpointer(orbax.PyTreeCheckpointHandler()) as checkpointer:
            took = seconds(lambda: checkpointer.save((folder / "peer").absolute(), content, force=True))
            checkpointer.wait_until_finished()
        return took

    mine = blocked(folder / "log", step, lambda to: train.jax.save(to, tree))
    what = f"JAX, {mib / 1024:g} GiB"
    return compared(what, mine, ("Orbax, synchronous", stock), ("Orbax, asynchronous", peer), folder)


def blocked(log: Path, step: Callable[[], None], save: Callable[[Path], None]) -> float:
    """The median of the seconds for which a commit blocks the step. The first commit allocates the buffers and is not
    counted."""
    job, taken = Job(member(log, KEEP="1")), []
    for number in range(ROUNDS + 1):
        for _ in range(STEPS):
            step()
        began = time.perf_counter()
        with job.commit(number + 1) as folder:
            save(folder)
        taken.append(time.perf_counter() - began)
        while job._member.commits.busy:
            step()
        job.flush()
    job.close()
    return median(taken[1:])


def compared(
    name: str, mine: float, stock: tuple[str, Callable[[], float]], peer: tuple[str, Callable[[], float]], folder: Path
) -> list[Row]:
    """The time beside that of a checkpoint that does not block, `peer`, and of one that blocks, `stock`."""
    found = []
    for _, save in (peer, stock):
        found.append(median([save() for _ in range(ROUNDS + 1)][1:]))
        for place in folder.glob("peer*"):
            shutil.rmtree(place)
    what, met = f"{name}: commits after the first, step blocked", mine <= GOAL * found[1]
    return [
        Row(what, mine, "s", peer[0], found[0]),
        Row(what, mine, "s", stock[0], found[1], f"≤ {GOAL}×", met),
    ]


def gpu() -> str:
    """Returns the name of the GPU, or an empty string on a machine without one."""
    try:
        import torch
    except ImportError:
        return ""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


if __name__ == "__main__":
    found = gpu()
    rows.main(
        measure,
        "On a GPU",
        skipped="" if found else "this machine has no GPU that PyTorch can use",
        note=f"Measured on one {found} with {os.cpu_count()} processors.",
        mib=4096,
    )
