"""A local backend whose Ray nodes and commit log are fake, so that each step of an attempt is made by the test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from spotladder.core.model import AttemptSeen, Launch, Progress
from spotladder.local import backend as module
from spotladder.local import driver
from spotladder.local.backend import LocalBackend
from spotladder.local.local_job import LocalJob, LocalTier
from spotladder.local.pools import PoolClock, PoolPlan
from spotladder.local.program import Program
from spotladder.records.model import Record

BEGAN = 1_000_000.0
Kind = TypeVar("Kind", bound=Record)


@dataclass
class FakeNode:
    name: str
    up: bool = False
    alive: bool = True
    why: str | None = None
    address: str = "10.0.0.1:6379"
    agent: str = "http://10.0.0.1:1"
    used: bool = True
    noticed: int = 0
    handed_over: list[float] = field(default_factory=list)

    def failed(self) -> str | None:
        return self.why

    def notice(self) -> None:
        self.noticed += 1

    def hand_over(self, deadline: float) -> None:
        self.handed_over.append(deadline)

    def kill(self) -> None:
        self.alive = False


@dataclass
class FakeLog:
    progress: Progress = field(default_factory=Progress)
    polls: int = 0
    current: bool = True
    gone: str = ""
    ended: list[tuple[bool, str]] = field(default_factory=list)

    def poll_now(self) -> None:
        self.polls += 1

    def end(self, *, succeeded: bool, message: str) -> None:
        self.ended.append((succeeded, message))


TOKEN = "t0ken"


class BackendRig:
    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        pools: Mapping[str, PoolClock] | None = None,
        **job_fields: Any,
    ) -> None:
        self.folder, self.now = folder, BEGAN
        self.nodes: dict[str, FakeNode] = {}
        self.submitted: list[tuple[str, Mapping[str, str]]] = []
        self.records: list[Record] = []
        self.log = FakeLog()

        def node(name: str, *_: object, **__: object) -> FakeNode:
            return self.nodes.setdefault(name, FakeNode(name))

        def submit(_program: Program, _agent: str, name: str, environment: Mapping[str, str], *, token: str) -> None:
            assert token == TOKEN
            self.submitted.append((name, environment))

        monkeypatch.setattr(module, "Head", node)
        monkeypatch.setattr(module, "Worker", node)
        monkeypatch.setattr(Program, "submit", submit)
        tier = LocalTier("pool", "python train.py", {"LR": "0.1", "SPOTLADDER_TIER": "not this"})
        machine: Any = SimpleNamespace(
            folder=folder, temporary=lambda number: folder / "tmp" / f"a{number}", token=TOKEN
        )
        self.pool = PoolClock(PoolPlan("pool", nodes=4), BEGAN, BEGAN)
        self.pools = pools or {"spot-a": self.pool, "spot-b": self.pool}
        tiers, environment = {"spot-a": tier, "spot-b": tier}, {"SPOTLADDER_URI": "s3://b/p"}
        job = LocalJob(
            **{"workers": 2, **job_fields},
            name="digits",
            namespace="team-a",
            cwd=folder,
            tiers=tiers,
            environment=environment,
        )
        self.backend = LocalBackend(
            job,
            machine,
            self.pools,
            self.log,  # type: ignore[arg-type]
            clock=lambda: self.now,
            emit=self.records.append,
            revision=7,
        )

    def up(self, *names: str) -> None:
        for name in names:
            self.nodes[name].up = True

    def observe(self, number: int = 1) -> AttemptSeen:
        seen = self.backend.observe().attempt(number)
        assert seen is not None
        return seen

    def start_all(self) -> None:
        """Bring up attempt 1 and start its program."""
        self.backend.launch(Launch(1, "spot-a"))
        self.up("h1")
        self.observe()
        self.up("a1-w1-1", "a1-w2-1")
        self.observe()
        driver.note(self.attempt() / "started.json", pid=1, at=self.now)

    def attempt(self, number: int = 1) -> Path:
        return self.folder / "attempts" / f"{number:04d}"

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [record for record in self.records if isinstance(record, kind)]
