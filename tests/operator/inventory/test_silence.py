"""Silent nodes before Kubernetes marks them: late Leases, the request to the kubelet, and the loss of contact."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import pytest

from spotladder.clusters.client import Page
from spotladder.clusters.errors import ClusterUnreachable, Forbidden, NotFound, Throttled
from spotladder.operator.inventory import silence
from spotladder.operator.inventory.leases import LEAST_LATENESS, LeaseTable
from spotladder.operator.inventory.silence import (
    ANSWER_TIMEOUT,
    POLL_INTERVAL,
    REFUSED_RETRY_INTERVAL,
    SilenceWatch,
)
from tests.clusters.stepped_clock import SteppedClock
from tests.workloads.builders import pod

RENEWAL = 10.0
"""Seconds between two renewals of a Lease by a kubelet, as in Kubernetes."""

STOPPED_AFTER = 20.0
"""Seconds after which the heartbeats of a lost program have stopped."""

MARKED_AFTER = 40.0
"""Seconds after which Kubernetes marks a node whose Lease is not renewed, at the earliest."""


@dataclass
class Machines:
    """The API server of a cluster with these nodes. Nodes in `dead` renew nothing and do not answer; nodes in `slow`
    renew nothing but answer."""

    clock: SteppedClock
    names: tuple[str, ...]
    dead: set[str] = field(default_factory=set)
    slow: set[str] = field(default_factory=set)
    refuses: bool = False
    away: bool = False
    busy: bool = False
    refuses_logs: bool = False
    gone: bool = False
    error_after: float = 0.0
    page_size: int = 100
    lists: int = 0
    asked: list[str] = field(default_factory=list)
    renewed: dict[str, float] = field(default_factory=dict)

    async def pages(self, *_: object) -> AsyncIterator[Page]:
        self.lists += 1
        if self.refuses:
            raise Forbidden(403, "Forbidden", "leases is forbidden")
        if self.away:
            raise ClusterUnreachable("list leases: no answer")
        if self.busy:
            raise Throttled(429, "TooManyRequests", "the server is busy")
        now = self.clock.ticks()
        for number, name in enumerate(self.names):
            if name not in self.dead | self.slow:
                self.renewed[name] = now - (now + 3.0 * number) % RENEWAL
        leases = [
            {"metadata": {"name": name}, "spec": {"renewTime": str(at), "leaseDurationSeconds": 40}}
            for name, at in self.renewed.items()
        ]
        for first in range(0, len(leases), self.page_size):
            yield Page(leases[first : first + self.page_size], "1")

    async def log(self, name: str, _namespace: str, *, container: str, tail: int) -> AsyncIterator[bytes]:
        assert (container, tail) == ("ray", 1)
        self.asked.append(name)
        if self.gone:
            raise NotFound(404, "NotFound", f"pods {name!r} not found")
        if self.refuses_logs:
            raise Forbidden(403, "Forbidden", "pods/log is forbidden")
        if name.removeprefix("pod-on-") in self.dead:
            await self.clock.sleep(self.error_after)
            raise ClusterUnreachable("log of pod: the API server answers 500: no route to host")
        yield b"step 7\n"


@dataclass
class JobInventory:
    jobs_on: Mapping[str, Mapping[str, tuple[str, str]]]
    suspected: frozenset[str] = frozenset()
    leases: LeaseTable = field(default_factory=LeaseTable)

    @property
    def occupied(self) -> Mapping[str, Mapping[str, tuple[str, str]]]:
        return self.jobs_on

    @property
    def pods(self) -> list[Any]:
        return [replace(pod(f"pod-on-{node}", node=node), program="ray") for node in self.jobs_on]

    def suspect(self, nodes: frozenset[str]) -> None:
        self.suspected = nodes


@dataclass
class ReportingPrograms:
    """The heartbeats of the programs. Those of the jobs in `stops_at` stop at these ticks."""

    clock: SteppedClock
    stops_at: dict[str, float] = field(default_factory=dict)
    doubted: list[set[str]] = field(default_factory=list)

    def doubt(self, jobs: Collection[tuple[str, str]]) -> None:
        self.doubted.append({name for _, name in jobs})

    def has_stopped(self, job: tuple[str, str], *, ahead: float = 0.0) -> bool:
        return self.clock.ticks() + ahead >= self.stops_at.get(job[1], inf)


class SilentNodesRig:
    """A cluster with nodes a to f. The job `one` has pods on a and b, the job `two` on c alone."""

    def __init__(self, *occupied: str, **more: Any) -> None:
        self.clock = SteppedClock()
        self.programs = ReportingPrograms(self.clock)
        self.client = Machines(self.clock, tuple("abcdef"), **more)
        jobs = {"a": "one", "b": "one", "c": "two"}
        self.inventory = JobInventory({name: {f"pod-on-{name}": ("team", jobs[name])} for name in occupied or jobs})
        self.name, self.problem, self.ahead = "home", "", 0.0
        self.counted: list[str] = []

    async def __aenter__(self) -> SilentNodesRig:
        clusters: Any = [self]
        self.task = asyncio.create_task(
            SilenceWatch(clusters, programs=self.programs, clock=self.clock, suspected=self.counted.append).run()
        )
        await self.clock.advance(3 * RENEWAL)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def seconds_until_suspected(self, node: str) -> float | None:
        began = self.clock.ticks()
        while self.clock.ticks() - began < 120.0:
            await self.clock.advance(1.0)
            if node in self.inventory.suspected:
                return self.clock.ticks() - began
        return None


@pytest.mark.parametrize("error_after", [0.0, 3.0, ANSWER_TIMEOUT])
@pytest.mark.parametrize("moment", range(10))
async def test_a_node_that_stops_is_suspected_before_kubernetes_marks_it(error_after: float, moment: int) -> None:
    async with SilentNodesRig(error_after=error_after) as world:
        await world.clock.advance(moment)
        world.client.dead = {"c"}
        took = await world.seconds_until_suspected("c")
        assert took is not None
        assert LEAST_LATENESS - RENEWAL <= took <= LEAST_LATENESS < MARKED_AFTER
        assert world.client.asked == ["pod-on-c"]


async def test_a_lease_that_is_renewed_while_its_kubelet_does_not_answer_is_not_late() -> None:
    async with SilentNodesRig(error_after=ANSWER_TIMEOUT) as world:
        world.client.dead = {"c"}
        while not world.client.asked:
            await world.clock.advance(1.0)
        world.client.dead = set()
        await world.clock.advance(120)
        assert world.inventory.suspected == frozenset()


async def test_nodes_that_stop_one_after_the_other_are_a_loss_of_contact() -> None:
    async with SilentNodesRig("a", "b") as world:
        world.client.dead = {"a"}
        await world.clock.advance(RENEWAL)
        world.client.dead = {"a", "b"}
        await world.clock.advance(120)
        assert world.inventory.suspected == frozenset()


STOPPED = {"one": 0.0}
"""The program of the job `one` has stopped."""


@pytest.mark.parametrize(
    ("trouble", "asked"),
    [
        pytest.param({"slow": {"c"}}, True, id="the kubelet answers although its Lease is late"),
        pytest.param({"dead": {"c"}, "refuses_logs": True}, True, id="logs may not be read"),
        pytest.param({"dead": {"a", "b"}, "refuses_logs": True, "stops_at": STOPPED}, True, id="nor of its nodes"),
        pytest.param({"slow": {"a", "b"}, "stops_at": STOPPED}, True, id="a program has stopped on nodes that answer"),
        pytest.param({"dead": set("abcdef"), "stops_at": STOPPED}, False, id="a program has stopped in an outage"),
        pytest.param({"stops_at": STOPPED}, False, id="a program has stopped on nodes that live"),
        pytest.param({"dead": {"c"}, "refuses": True}, False, id="Leases may not be listed"),
        pytest.param({"dead": set("abcdef")}, False, id="no node renews its Lease"),
        pytest.param({"dead": set("abcd")}, False, id="most nodes of the cluster stop together"),
        pytest.param({"dead": {"a", "b"}}, False, id="all nodes of a job stop together"),
        pytest.param({"dead": {"d"}}, False, id="a node without pods of attempts"),
        pytest.param({"dead": {"c"}, "away": True}, False, id="the API server does not answer"),
    ],
)
async def test_no_node_is_suspected_without_proof(trouble: dict[str, Any], asked: bool) -> None:
    async with SilentNodesRig() as world:
        for name, value in trouble.items():
            setattr(world.programs if name == "stops_at" else world.client, name, value)
        await world.clock.advance(120)
        assert world.inventory.suspected == frozenset()
        assert bool(world.client.asked) == asked


async def test_after_an_outage_of_the_api_server_every_lease_can_be_renewed_first() -> None:
    async with SilentNodesRig() as world:
        world.client.away = True
        await world.clock.advance(120)
        world.client.away = False
        await world.clock.advance(POLL_INTERVAL)
        assert world.client.asked == []
        await world.clock.advance(60)
        assert world.client.asked == []


async def test_a_node_that_was_silent_when_the_controller_started_is_left_to_kubernetes() -> None:
    world = SilentNodesRig(dead={"c"})
    world.client.renewed = dict.fromkeys(world.client.names, 0.0)
    async with world:
        assert await world.seconds_until_suspected("c") is None


async def test_leases_are_listed_only_while_attempts_have_nodes_and_seldom_when_refused() -> None:
    async with SilentNodesRig() as world:
        world.inventory.jobs_on, before = {}, world.client.lists
        await world.clock.advance(60)
        assert world.client.lists == before
    async with SilentNodesRig("c", refuses=True) as world:
        await world.clock.advance(60)
        assert world.client.lists == 1


async def test_the_suspicion_ends_when_leases_may_no_longer_be_listed() -> None:
    async with SilentNodesRig() as world:
        world.client.dead = {"c"}
        await world.seconds_until_suspected("c")
        world.client.refuses = True
        await world.clock.advance(POLL_INTERVAL)
        assert world.inventory.suspected == frozenset()


async def test_the_suspicion_lasts_while_the_api_server_is_busy() -> None:
    async with SilentNodesRig() as world:
        world.client.dead = {"c"}
        await world.seconds_until_suspected("c")
        world.client.busy, before = True, world.client.lists
        await world.clock.advance(4 * POLL_INTERVAL)
        assert world.inventory.suspected == {"c"}
        assert world.client.lists > before + 2


async def test_leases_of_too_many_nodes_are_listed_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "MAX_PAGES", 2)
    async with SilentNodesRig("c", page_size=2) as world:  # three pages
        await world.clock.advance(REFUSED_RETRY_INTERVAL - 3 * RENEWAL)
        assert world.client.lists == 1
        await world.clock.advance(2 * POLL_INTERVAL)
        assert world.client.lists == 2


@pytest.mark.parametrize("moment", range(10))
@pytest.mark.parametrize("lost", ["ab", "abcd"])
async def test_all_nodes_of_a_job_are_suspected_together_once_its_program_has_stopped(lost: str, moment: int) -> None:
    async with SilentNodesRig("a", "b") as world:
        await world.clock.advance(moment)
        world.programs.stops_at = {"one": world.clock.ticks() + STOPPED_AFTER}
        world.client.dead = set(lost)
        took = await world.seconds_until_suspected("a")
        assert took is not None
        assert STOPPED_AFTER <= took <= STOPPED_AFTER + POLL_INTERVAL + ANSWER_TIMEOUT
        assert world.inventory.suspected == {"a", "b"}
        assert sorted(world.client.asked) == ["pod-on-a", "pod-on-b"]
        world.client.dead = set()
        await world.clock.advance(RENEWAL + POLL_INTERVAL)
        assert world.inventory.suspected == frozenset()


async def test_while_another_program_on_their_nodes_lives_no_node_is_suspected() -> None:
    async with SilentNodesRig("a", "b", "c") as world:
        world.inventory.jobs_on = {**world.inventory.jobs_on, "b": {"x": ("team", "one"), "y": ("team", "two")}}
        world.programs.stops_at = {"one": 0.0}
        world.client.dead = {"a", "b", "c"}
        assert await world.seconds_until_suspected("a") is None
        world.programs.stops_at["two"] = 0.0
        assert await world.seconds_until_suspected("a") is not None
        assert world.inventory.suspected == {"a", "b", "c"}


async def test_heartbeats_are_doubted_while_a_lease_is_overdue() -> None:
    async with SilentNodesRig() as world:
        assert world.programs.doubted == []
        world.client.dead = {"a"}
        await world.clock.advance(RENEWAL + 2 * POLL_INTERVAL)
        assert world.programs.doubted == [{"one"}]
        world.client.dead = set()
        await world.clock.advance(RENEWAL + 2 * POLL_INTERVAL)
        assert world.programs.doubted == [{"one"}, set()]
        world.client.dead = {"c"}
        await world.clock.advance(RENEWAL + 2 * POLL_INTERVAL)
        world.problem = "the cluster cannot be reached"
        await world.clock.advance(2 * POLL_INTERVAL)
        assert world.programs.doubted[2:] == [{"two"}, set()]
