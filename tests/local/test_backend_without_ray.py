"""The local backend with fake nodes and a program that does not use Ray: it is lost with any of its nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.model import Drain, Exit, PodPhase
from spotladder.core.reasons import Reason
from spotladder.local import driver
from spotladder.local.program import Program
from spotladder.records.model import Noted
from tests.local.rig import BEGAN, BackendRig


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows when a program is killed with its node."""
    killed: list[str] = []
    monkeypatch.setattr(Program, "go_with_node", lambda program: killed.append(program.folder.name))
    return killed


def start_without_ray(rig: BackendRig) -> None:
    """Start a program that does not use Ray."""
    rig.start_all()
    rig.nodes["h1"].used = False
    driver.note(rig.attempt() / "heartbeat.json", step=1, total=9)
    rig.observe()


def test_a_program_that_does_not_use_ray_is_killed_with_a_lost_node(rig: BackendRig, killed: list[str]) -> None:
    start_without_ray(rig)
    (noted,) = rig.of(Noted)
    assert "counts as running on a1-w1, a1-w2" in str(noted)
    rig.nodes["a1-w2-1"].alive = False
    rig.observe()
    assert killed == ["0001"]
    assert "a1-w3-1" not in rig.nodes, "there is no program left to recover in place"
    driver.note(rig.attempt() / "exited.json", code=-9, at=BEGAN)
    seen = rig.observe()
    assert (seen.exit, seen.message) == (Exit.FAILED, "the program ran on a1-w2, which is lost")


@pytest.mark.parametrize("beats", [True, False])
def test_a_program_that_uses_ray_or_may_still_connect_is_not_killed_with_a_lost_node(
    rig: BackendRig, killed: list[str], beats: bool
) -> None:
    rig.start_all()
    rig.nodes["h1"].used = beats
    if beats:
        driver.note(rig.attempt() / "heartbeat.json", step=1, total=9)
    rig.observe()
    rig.nodes["a1-w2-1"].alive = False
    rig.observe()
    rig.observe()
    assert killed == []
    assert "a1-w3-1" in rig.nodes
    assert rig.of(Noted) == []


def test_a_program_that_does_not_use_ray_runs_until_the_notice_ends(rig: BackendRig, killed: list[str]) -> None:
    """Regression: Ray drains an idle node at once, and the program was killed 1–2 s after its notice."""
    rig.pool.plan = replace(rig.pool.plan, taken_at=(10.0,), notice=20.0)
    start_without_ray(rig)
    rig.now += 11
    rig.observe()
    rig.nodes["a1-w1-1"].alive = False  # drained
    rig.backend.drain(Drain(1, rig.now + 20, Reason.EVICTION_NOTICE))
    rig.now += 19
    noticed = next(pod for pod in rig.observe().pods if pod.uid == "a1-w1")
    assert (noticed.phase, noticed.noticed, killed) == (PodPhase.RUNNING, True, [])
    rig.now += 1
    rig.observe()
    assert killed == ["0001"]
