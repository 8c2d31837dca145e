"""train.jax with arrays that are sharded over real processes: committed by two, resumed by one and by three."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spotladder.errors import CheckpointCorrupt
from spotladder.train.jax import restore
from tests.frameworks import sharded_jax
from tests.frameworks.test_same_weights import ranks_of
from tests.ports import free_port
from tests.train import builders

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.frameworks

LIMIT = 600.0


def run(folder: Path, attempt: int, size: int, *more: str) -> list[tuple[int, list[str]]]:
    """Run all ranks of an attempt. Returns the exit code of each, and the steps from which it resumed."""
    port = free_port()
    logs = [folder / f"{attempt}-{rank}.log" for rank in range(size)]
    processes = []
    try:
        for rank, log in enumerate(logs):
            variables = builders.variables(folder / "store", attempt=attempt, rank=rank, world_size=size)
            with log.open("wb") as output:
                processes.append(
                    subprocess.Popen(
                        [sys.executable, "-m", sharded_jax.__name__, str(port), *more],
                        cwd=Path(__file__).parents[2],
                        env=os.environ | variables,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
                )
        codes = [process.wait(LIMIT) for process in processes]
    except subprocess.TimeoutExpired:
        pytest.fail("\n".join(log.read_text() for log in logs))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    print(*(log.read_text() for log in logs), sep="\n")
    return [(code, re.findall(r"resumed from \d+", log.read_text())) for code, log in zip(codes, logs, strict=True)]


def state(step: int) -> Any:
    """The state of one process with one device."""
    return sharded_jax.state(step, lambda _, value: jax.numpy.asarray(value))


def committed(folder: Path) -> list[tuple[int, list[int]]]:
    """The step of every commit, and the ranks that wrote it."""
    return [(commit.step, ranks_of(commit)) for commit in builders.log_of(folder / "store").commits()]


def check_on_one_device(folder: Path, attempt: int, step: int) -> None:
    job = builders.job(folder / "store", attempt=attempt)
    with job.resume() as found:
        assert found is not None
        assert found.step == step
        assert sharded_jax.same(restore(found, like=state(0)), state(step))
        smaller = state(0)
        smaller["params"]["rows"] = smaller["params"]["rows"][:6]
        with pytest.raises(CheckpointCorrupt, match=r"float32\[12, 12\] was committed, the program expects float32\[6"):
            restore(found, like=smaller)
        (found.to_read() / "shards-1.json").unlink()
        with pytest.raises(CheckpointCorrupt, match="elements are in none of the files"):
            restore(found, like=state(0))
    job.close()


def test_other_numbers_of_processes_resume_from_the_newest_commit_of_all_ranks(tmp_path: Path) -> None:
    """Two processes commit step 1 and lose rank 1 in the commit of step 2, which is never restored."""
    assert run(tmp_path, 1, 2, "lost") == [(0, ["resumed from 0"]), (-signal.SIGKILL, ["resumed from 0"])]
    assert committed(tmp_path) == [(1, [0, 1])]
    check_on_one_device(tmp_path, 2, 1)
    assert run(tmp_path, 3, 3) == [(0, ["resumed from 1"])] * 3
    assert committed(tmp_path)[-1] == (2, [0, 1, 2])
    check_on_one_device(tmp_path, 4, 2)
