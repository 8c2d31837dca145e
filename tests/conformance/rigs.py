"""The rigs of the fake, of this machine and of the simulator: a rig controls the world of its backend."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spotladder.core.model import (
    AttemptSeen,
    Exit,
    Observation,
    PodPhase,
    PodRole,
)
from spotladder.local import backend as local_backend
from spotladder.local import driver
from spotladder.local.backend import LocalBackend
from spotladder.local.local_job import LocalJob, LocalTier
from spotladder.local.nodes import NodeSettings
from spotladder.local.pools import PoolClock, PoolPlan
from spotladder.local.program import Program
from spotladder.local.reaper import MARK, Reaper, members
from spotladder.local.scratch import new_scratch
from spotladder.sim.trace import Trace
from spotladder.sim.world.backend import SimBackend
from spotladder.sim.world.market import Market
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.zone import ZonePlan
from tests.core.fake_backend import FakeBackend
from tests.local.rig import FakeLog, FakeNode

NODE_TIMEOUT = 600.0
WORKERS = 2


def ready_workers(seen: Observation, number: int) -> int:
    """The number of ready workers of the attempt; 0 while its head, if it has one, is not ready."""
    attempt = seen.attempt(number)
    if attempt is None:
        return 0
    ready = [pod for pod in attempt.pods if pod.ready and pod.phase is PodPhase.RUNNING]
    heads = [pod for pod in attempt.pods if pod.role is PodRole.HEAD]
    return sum(pod.role is PodRole.WORKER for pod in ready) if all(head in ready for head in heads) else 0


def all_ready(seen: Observation, number: int) -> bool:
    return ready_workers(seen, number) == WORKERS


@dataclass
class FakeRig:
    """The fake backend; the test triggers every change."""

    backend: FakeBackend = field(default_factory=lambda: FakeBackend(WORKERS))

    def until(self, met: Callable[[Observation], bool]) -> Observation:
        seen = self.backend.observe()
        assert met(seen), seen
        return seen

    def bring_up(self, number: int, workers: int | None = None) -> AttemptSeen:
        self.backend.bring_up(number, workers)
        return self.until(lambda _seen: True).attempts[0]

    def kill_worker(self, uid: str) -> None:
        self.backend.lose(uid)
        self.backend.bring_up(int(uid[1]))

    def let_program_crash(self, number: int) -> None:
        self.backend.end_program(number, Exit.FAILED, "exit code 3")

    def let_program_end(self, number: int) -> None:
        how = Exit.INTERRUPTED if number in self.backend.drained else Exit.SUCCEEDED
        self.backend.end_program(number, how)


PROGRAM = """\
import os, pathlib, time
folder = pathlib.Path(os.environ["SPOTLADDER_NOTICE"]).parent
while not (folder / "end").exists():
    notice = folder / "notice.json"
    if notice.exists() and not any(kind in notice.read_text() for kind in ('"takeover"', '"commit"')):
        raise SystemExit(75)
    if (folder / "crash").exists():
        raise SystemExit(3)
    time.sleep(0.02)
"""


class LightNode(FakeNode):
    """A node without Ray: it is up at once, and goes at its notice, like an idle node of Ray."""

    def notice(self) -> None:
        self.kill()


class LocalRig:
    """Processes of this machine in real time: real Ray, or light nodes (`without_ray`) beside real programs."""

    def __init__(self, folder: Path) -> None:
        (folder / "program.py").write_text(PROGRAM)
        self.mark = uuid.uuid4().hex
        self.drivers: dict[Path, subprocess.Popen[bytes]] = {}
        self.scratch = new_scratch(self.mark)
        self.reaper = Reaper(self.mark, self.scratch.path, self.scratch.lock)
        self.folder = folder
        machine = NodeSettings(self.mark, self.scratch.path, folder / "state", folder, self.reaper, 80 * 1024**2)
        tier = LocalTier("pool", "python program.py", {})
        job = LocalJob("conforms", "tests", WORKERS, folder, {"spot-a": tier, "spot-b": tier}, {})
        now = time.time()
        pool = PoolClock(PoolPlan("pool", nodes=4), now, now)
        log: Any = FakeLog()
        self.backend = LocalBackend(
            job, machine, {"spot-a": pool, "spot-b": pool}, log, clock=time.time, emit=lambda _record: None
        )

    def without_ray(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Use light nodes from now on. Their programs run below the driver that Ray would start."""

        def node(*_: object, **__: object) -> LightNode:
            return LightNode("light", up=True)

        def submit(program: Program, _agent: str, _name: str, environment: Mapping[str, str], *, token: str) -> None:
            if program.folder not in self.drivers:
                command = [sys.executable, "-I", "-S", driver.__file__, str(program.folder)]
                variables = {**os.environ, MARK: self.mark, **environment}
                self.drivers[program.folder] = subprocess.Popen(command, env=variables, start_new_session=True)

        monkeypatch.setattr(local_backend, "Head", node)
        monkeypatch.setattr(local_backend, "Worker", node)
        monkeypatch.setattr(Program, "submit", submit)

    def until(self, met: Callable[[Observation], bool]) -> Observation:
        deadline = time.monotonic() + NODE_TIMEOUT
        while not met(seen := self.backend.observe()):
            assert time.monotonic() < deadline, seen
            time.sleep(0.05)
        return seen

    def bring_up(self, number: int) -> AttemptSeen:
        seen = self.until(lambda seen: all_ready(seen, number)).attempt(number)
        assert seen is not None
        deadline = time.monotonic() + NODE_TIMEOUT
        while not (self.folder / "state" / "attempts" / f"{number:04d}" / "started.json").exists():
            assert time.monotonic() < deadline, "the program did not start"
            self.backend.observe()
            time.sleep(0.05)
        return seen

    def kill_worker(self, uid: str) -> None:
        fleet = next(iter(self.backend._attempts.values())).fleet
        pod = next(pod for pod in fleet._pods if pod.uid == uid)
        assert pod.node is not None
        pod.node.kill()

    def let_program_crash(self, number: int) -> None:
        (self.folder / "state" / "attempts" / f"{number:04d}" / "crash").touch()

    def let_program_end(self, number: int) -> None:
        (self.folder / "state" / "attempts" / f"{number:04d}" / "end").touch()

    def close(self) -> None:
        self.reaper.close()
        for started in self.drivers.values():
            started.wait()
        assert members(self.mark, set()) == []
        self.scratch.close()
        assert not self.scratch.path.exists()


class SimRig:
    """The simulator; its clock is stepped from event to event."""

    def __init__(self, sizes: tuple[int, ...] = (), trace: Trace | None = None) -> None:
        plans = [ZonePlan("spot-a", trace, provision_delay=5.0, boot=10.0), ZonePlan("spot-b")]
        self.market = Market.of(plans)
        program = ProgramPlan(10**6, commit_time=0.0, hands_over=True, sizes=sizes)
        self.backend = SimBackend(self.market, WORKERS, program, {"spot-a": "spot-a", "spot-b": "spot-b"})

    def until(self, met: Callable[[Observation], bool]) -> Observation:
        for _ in range(1000):
            if met(seen := self.backend.observe()):
                return seen
            self.market.advance(min(self.market.next_event(self.backend.watched), self.backend.next_event()))
            self.backend.advance()
        raise AssertionError(seen)

    def bring_up(self, number: int, workers: int = WORKERS) -> AttemptSeen:
        seen = self.until(lambda seen: ready_workers(seen, number) == workers).attempt(number)
        assert seen is not None
        return seen

    def kill_worker(self, uid: str) -> None:
        self.backend.lose(uid)

    def let_program_crash(self, number: int) -> None:
        self.backend.end_program(number, Exit.FAILED, "exit code 3")

    def let_program_end(self, number: int) -> None:
        self.backend.end_program(number, Exit.SUCCEEDED)
