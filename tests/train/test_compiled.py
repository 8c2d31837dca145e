"""The compile caches of a job: rank 0 stores them after a commit, and every rank has them before its first step."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spotladder.checkpoints import compiled
from spotladder.checkpoints.compiled import CompileCaches
from spotladder.checkpoints.disk import DiskStore
from spotladder.train.session import Job
from tests.checkpoints.builders import wait_for_save
from tests.train.builders import Ranks, train
from tests.train.program_site import Site

pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer."""
    monkeypatch.setattr(compiled, "PUT_BACK_TIMEOUT", 600.0)


def compiling(folder: Path, name: str) -> Callable[[int], object]:
    """What a framework does in the first step."""

    def compile_at(step: int) -> None:
        path = folder / "torch" / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("code")
            os.utime(path, (1.7e9, 1.7e9))

    return compile_at


def saved(job: Job) -> None:
    caches = job._member.log.compiled
    assert caches is not None
    wait_for_save(caches)


def test_rank_0_stores_what_was_compiled_and_every_machine_of_the_next_attempt_has_it(tmp_path: Path) -> None:
    store = tmp_path / "store"

    def run(attempt: int, name: str) -> None:
        machines = [tmp_path / f"{attempt}-{rank}" for rank in range(2)]
        with Ranks(store, 2, own=[{"compiled": machine} for machine in machines], attempt=attempt) as ranks:
            seen = ranks.on_all(
                lambda job: train(
                    job, 10 * attempt, on_step=compiling(machines[job.rank], f"{name}-{job.rank}"), flush=True
                )
            )
            assert seen == [[10 * attempt]] * 2
            saved(ranks.jobs[0])

    run(1, "a")
    run(2, "b")
    run(3, "c")
    for rank in range(2):
        folder = tmp_path / f"3-{rank}" / "torch"
        assert {path.name for path in folder.iterdir()} == {"a-0", "b-0", f"c-{rank}"}
    assert len(list((store / "digits/compiled").iterdir())) == 1


def test_a_program_with_its_own_checkpoints_has_the_caches_when_it_starts(tmp_path: Path) -> None:
    store = tmp_path / "bucket/digits"
    compiling(tmp_path / "1", "a")(1)
    first = CompileCaches(tmp_path / "1", DiskStore(store))
    first.put_back()
    first.wait()
    first.save(0)
    wait_for_save(first)
    site, folder = Site(tmp_path), tmp_path / "2"
    code, said = site.end(site.start(2, "ls", str(folder / "torch"), compiled=folder))
    assert code == 0, said
    assert "a" in said.splitlines()
