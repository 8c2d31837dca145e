"""An interrupted and resumed run ends with exactly the weights of an uninterrupted one, on one worker and on two.

The training loops are those of the examples. The processes are connected without Ray; tests/examples runs them on Ray.
"""

from __future__ import annotations

import functools
import multiprocessing
import re
import signal
from multiprocessing import forkserver
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import pytest

from spotladder.checkpoints.entries import Commit
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from tests.frameworks.rank import FrameworkRank, main
from tests.ports import free_port

STEPS, LOST_AT = 30, 17
SMALL = {"steps": STEPS, "batch": 16, "width": 64, "pace": 0.0, "gpu": False}
LIMIT = 600.0
ONE_THREAD = {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}

FRAMEWORKS = [
    "tensorflow",
    pytest.param("torch", marks=pytest.mark.frameworks),
    pytest.param("jax", marks=pytest.mark.frameworks),
]


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_weights_are_bit_identical(framework: str, size: int, tmp_path: Path) -> None:
    if framework != "tensorflow":
        pytest.importorskip(framework)
    assert run(framework, size, tmp_path / "whole") == 0
    assert run(framework, size, tmp_path / "lost", lost_at=LOST_AT) == -signal.SIGKILL
    assert newest(tmp_path / "lost").step == 10
    assert run(framework, size, tmp_path / "lost", attempt=2) == 0
    uninterrupted, resumed = newest(tmp_path / "whole"), newest(tmp_path / "lost")
    assert (uninterrupted.step, resumed.step, resumed.attempt) == (STEPS, STEPS, 2)
    assert uninterrupted.metrics == resumed.metrics
    assert ranks_of(resumed) == (list(range(size)) if size > 1 else [])
    before = log_of(tmp_path / "whole").commits()[-2]
    end, again, earlier = (
        weights(framework, commit, tmp_path / folder / "digits")
        for commit, folder in ((uninterrupted, "whole"), (resumed, "lost"), (before, "whole"))
    )
    assert end == again != earlier


def run(framework: str, size: int, folder: Path, attempt: int = 1, **more: Any) -> int | None:
    """Run all ranks of one attempt. Returns the exit code of rank 0 (negative: the signal that killed it). The other
    ranks end with it. Rank 0 prints to `folder`/rank-0.log.
    """
    folder.mkdir(exist_ok=True)
    settings = {"JOB": "digits", "URI": folder, "ATTEMPT": attempt, "INTERVAL": "10steps", "WORLD_SIZE": size}
    variables = {**ONE_THREAD, **{f"SPOTLADDER_{key}": str(value) for key, value in settings.items()}}
    port, config = free_port(size), {**SMALL, **more}  # TensorFlow needs a port for each rank
    ranks = [
        processes(framework).Process(  # type: ignore[attr-defined]
            target=main,
            args=(FrameworkRank(framework, rank, size, port, config, variables, folder / f"rank-{rank}.log"),),
        )
        for rank in range(size)
    ]
    try:
        for process in ranks:
            process.start()
        wait([process.sentinel for process in ranks], LIMIT)
        if ranks[0].exitcode is None:
            assert all(process.exitcode in (None, 0) for process in ranks[1:]), "a rank failed, and rank 0 waits for it"
        ranks[0].join(LIMIT)
        code: int | None = ranks[0].exitcode
        for process in ranks[1:]:
            if code == 0:
                process.join(LIMIT)
                assert process.exitcode == 0
        return code
    finally:
        for process in ranks:
            process.kill()
            process.join()


@functools.cache
def processes(framework: str) -> BaseContext:
    """The multiprocessing context of a framework: processes are forked from one that has imported it, because importing
    TensorFlow takes 6 s of CPU time. Processes of a second framework in the same test run import it themselves.
    """
    if processes.cache_info().currsize:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([framework])
    with pytest.MonkeyPatch.context() as environment:
        for name, value in ONE_THREAD.items():
            environment.setenv(name, value)
        forkserver.ensure_running()
    return context


def log_of(folder: Path) -> CommitLog:
    return CommitLog(open_store(str(folder)), "digits")


def newest(folder: Path) -> Commit:
    commit = log_of(folder).newest()
    assert commit is not None
    return commit


def ranks_of(commit: Commit) -> list[int]:
    """The ranks that have a folder in the commit; empty for a commit of one process."""
    found = [re.match(r"rank-(\d+)/", file.name) for file in commit.files]
    return sorted({int(match[1]) for match in found if match})


def weights(framework: str, commit: Commit, folder: Path) -> object:
    """The content of a commit in a form that can be compared: model and optimizer."""
    if framework == "jax":
        return tree(commit, folder)
    file = {"tensorflow": "model.data-00000-of-00001", "torch": "state.pt"}[framework]
    (written,) = [written for written in commit.files if written.name in {file, f"rank-0000/{file}"}]
    return written.size, written.crc


def tree(commit: Commit, folder: Path) -> list[bytes]:
    """Orbax's files have random names and times, so compare the trees that Orbax reads."""
    import jax
    import numpy as np
    import orbax.checkpoint as orbax

    own = "rank-0000/state" if ranks_of(commit) else "state"
    state = orbax.PyTreeCheckpointer().restore(folder / commit.path / own)
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state)]
