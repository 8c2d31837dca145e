"""Commits of a state on a GPU, compared with the frameworks' own checkpoints of the same state in the same run.

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
"""Steps of the blocks without a commit."""

GOAL = 0.25


def measure(mib: int) -> Sequence[Row]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # Two frameworks use this GPU.
    with tempfile.TemporaryDirectory(prefix="spotladder-bench-") as name:
        folder = Path(name)
        return [*with_torch(folder, mib), *with_jax(folder, mib)]


# --- PyTorch --------------------------------------------------------------------------------------------------------


def with_torch(folder: Path, mib: int) -> list[Row]:
    import torch
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.staging import BlockingAsyncStager

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(7)
    width = mib * MIB // TENSORS // 4
    model = torch.nn.ParameterList(torch.rand(width, device=device) for _ in range(TENSORS))
    state, factors = train.torch.State(model=model), torch.rand(2, 2048, 2048, device=device)

    def step() -> None:
        for _ in range(20):
            factors[0] @ factors[1]
        with torch.no_grad():
            torch._foreach_add_(list(model), 1e-3)  # one kernel, as in an optimizer
        if device == "cuda":
            torch.cuda.synchronize()

    def stock(number: int) -> float:
        torch.save(model.state_dict(), folder / f"stock-{number}.pt")
        return 0.0

    stager = BlockingAsyncStager(cache_staged_state_dict=device == "cuda")

    def peer(number: int) -> float:
        began = time.perf_counter()
        saving = checkpoint.async_save(
            {"model": model.state_dict()},
            storage_writer=checkpoint.FileSystemWriter(folder / f"peer-{number}"),
            async_stager=stager,
        )
        blocked = time.perf_counter() - began
        saving.result()
        return blocked

    job = Job(member(folder / "torch", KEEP="1"))
    commits = Committed(job, step, state.save)
    commits.repeat()
    expected = commits.expect(lambda: [weight.detach().clone() for weight in model])
    saved = [seconds(lambda: stock(number)) for number in range(ROUNDS)]  # noqa: B023 – called at once
    blocked = [peer(number) for number in range(ROUNDS)]

    def restore() -> None:
        with Job(member(folder / "torch", ATTEMPT="2")).resume() as found:
            assert found is not None
            state.restore(found)
        if device == "cuda":
            torch.cuda.synchronize()

    with torch.no_grad():
        for weight in model:
            weight.zero_()
    resumed = seconds(restore)
    assert all(torch.equal(*pair) for pair in zip(model, expected, strict=True))
    assert all(weight.device.type == device for weight in model)
    loaded = seconds(lambda: model.load_state_dict(torch.load(folder / "stock-0.pt", map_location=device)))
    job.close()
    remove(folder)
    return [
        *commits.rows("PyTorch", mib, ("torch.save", median(saved)), ("DCP async_save", blocked)),
        Row(f"PyTorch, {size(mib)}: verified resume", resumed, "s", "torch.load, not verified", loaded),
    ]


# --- JAX ------------------------------------------------------------------------------------------------------------


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

    def save(to: Path) -> None:
        train.jax.save(to, tree)

    job = Job(member(folder / "jax", KEEP="1"))
    commits = Committed(job, step, save)
    commits.repeat()
    expected = commits.expect(lambda: tree)

    def fresh() -> Any:
        """The tree without a copy of it on the host: JAX keeps such copies."""
        return jax.block_until_ready(jax.tree.map(lambda leaf: leaf + 0, tree))

    saved, blocked = [], []
    for number in range(ROUNDS):
        with orbax.Checkpointer(orbax.PyTreeCheckpointHandler()) as checkpointer:
            content = fresh()
            saved.append(seconds(lambda: checkpointer.save((folder / f"stock-{number}").absolute(), content)))  # noqa: B023
        with orbax.AsyncCheckpointer(orbax.PyTreeCheckpointHandler()) as checkpointer:
            content = fresh()
            blocked.append(seconds(lambda: checkpointer.save((folder / f"peer-{number}").absolute(), content)))  # noqa: B023
            checkpointer.wait_until_finished()

    def restore() -> Any:
        with Job(member(folder / "jax", ATTEMPT="2")).resume() as found:
            assert found is not None
            return jax.block_until_ready(train.jax.restore(found, like=tree))

    again: list[Any] = []
    resumed = seconds(lambda: again.append(restore()))
    assert all((a == b).all() and a.devices() == b.devices() for a, b in zip(again[0], expected, strict=True))
    with orbax.Checkpointer(orbax.PyTreeCheckpointHandler()) as checkpointer:
        place = (folder / "stock-0").absolute()
        args = jax.tree.map(lambda leaf: orbax.ArrayRestoreArgs(sharding=leaf.sharding), tree)
        loaded = seconds(lambda: jax.block_until_ready(checkpointer.restore(place, item=tree, restore_args=args)))
    job.close()
    remove(folder)
    return [
        *commits.rows("JAX", mib, ("Orbax, synchronous", median(saved)), ("Orbax, asynchronous", blocked)),
        Row(f"JAX, {size(mib)}: verified resume", resumed, "s", "Orbax, not verified", loaded),
    ]


# --- both -----------------------------------------------------------------------------------------------------------


class Committed:
    """Commits of one state between steps, and their times."""

    def __init__(self, job: Job, step: Callable[[], None], save: Callable[[Path], None]) -> None:
        self._job, self._step, self._save = job, step, save
        self.number = 0
        self.blocked: list[float] = []
        self.whole: list[float] = []
        self.plain: list[float] = []
        self.beside: list[float] = []

    def repeat(self) -> None:
        """One commit with new buffers, then `ROUNDS` that use them again, with steps beside and between them."""
        for _ in range(3):
            self._step()
        for _ in range(ROUNDS + 1):
            self.plain += [seconds(self._step) for _ in range(STEPS)]
            began = time.perf_counter()
            self.commit()
            while self._job._member.commits.busy:
                self.beside.append(seconds(self._step))
            self._job.flush()
            self.whole.append(time.perf_counter() - began)

    def commit(self) -> None:
        self.number += 1
        began = time.perf_counter()
        with self._job.commit(self.number) as folder:
            self._save(folder)
        self.blocked.append(time.perf_counter() - began)

    def expect(self, copy: Callable[[], Any]) -> Any:
        """The state of one more commit; the next steps change the program's own."""
        expected = copy()
        self.commit()
        self._step()
        self._job.flush()
        return expected

    def rows(self, name: str, mib: int, stock: tuple[str, float], peer: tuple[str, Sequence[float]]) -> list[Row]:
        """The measured times beside those of a checkpoint that blocks, `stock`, and of one that does not, `peer`."""
        (stocks, whole), (peers, waits) = stock, peer
        what, gib = f"{name}, {size(mib)}:", mib / 1024
        again, committed = median(self.blocked[1 : ROUNDS + 1]), median(self.whole[1:])
        met = again <= GOAL * whole
        beside, plain = median(self.beside) * 1e3, median(self.plain) * 1e3
        return [
            Row(f"{what} first commit, step blocked", self.blocked[0], "s", f"{peers}, first", waits[0]),
            Row(f"{what} later commits, step blocked", again, "s", f"{peers}, later", median(waits[1:])),
            Row(f"{what} later commits, step blocked", again, "s", stocks, whole, f"≤ {GOAL}×", met),
            Row(f"{what} block → committed, with steps beside", committed, "s", stocks, whole),
            Row(f"{what} bytes committed per second", gib / committed, "GiB/s", stocks, gib / whole),
            Row(f"{what} median step beside a commit", beside, "ms", "the same step alone", plain),
        ]


def size(mib: int) -> str:
    return f"{mib / 1024:g} GiB"


def remove(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


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
