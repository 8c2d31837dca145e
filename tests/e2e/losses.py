"""Every way to lose a machine, done to a running job, and when the job made its next new step.

The same losses serve the test and the table of docs/benchmarks.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.e2e.kube import Object
from tests.e2e.steps import Step
from tests.e2e.world import HEADS, E2eCluster

SPOT = "spot"
INTERVAL = 5
"""Steps from commit to commit."""

ALONE = 120.0
"""Seconds that are waited for KubeRay alone; without an end it may take for ever."""


@dataclass(frozen=True)
class Loss:
    """One way. `act` does it to the machines of these pools that the job is on: one of each that is named. `again`
    bounds the steps that are lost by it: an interval, and the step that was under way."""

    name: str
    act: Callable[[E2eCluster, Sequence[str]], None]
    pools: tuple[str, ...] = (SPOT,)
    again: int = INTERVAL + 1

    def spare(self, pool: str) -> int:
        """How many machines of the pool the job needs in place of those."""
        return self.pools.count(pool)


def _notice(grace: float) -> Callable[[E2eCluster, Sequence[str]], None]:
    return lambda here, nodes: here.processes.extend(here.cluster.notice(node, grace) for node in nodes)


LOSSES = (
    Loss("node killed, its Node object stays", lambda here, nodes: here.cluster.kill(*nodes)),
    Loss("node removed", lambda here, nodes: here.cluster.remove(*nodes)),
    Loss("power cut", lambda here, nodes: here.cluster.kill(*nodes, silent=True)),
    Loss("notice of 45 s", _notice(45), again=1),
    Loss("notice of 8 s", _notice(8), again=1),
    Loss("head's node removed", lambda here, nodes: here.cluster.remove(*nodes), (HEADS,)),
    # Last: what trains on there tells its steps for a while. That it is fenced it learns when a commit is refused, and
    # those are made beside the steps.
    Loss(
        "all its nodes cut off",
        lambda here, nodes: here.cluster.partition(*nodes),
        (HEADS, SPOT, SPOT),
        again=3 * INTERVAL + 1,
    ),
)


@dataclass(frozen=True)
class Seen:
    """Seconds from the loss to: it is counted, the next attempt is created (None: recovered in place), the first step
    that was never done before. `again`: steps that had to be done again."""

    name: str
    counted: float
    next_attempt: float | None
    first_step: float
    again: int


def _in_its_work(here: E2eCluster, name: str) -> Step:
    """A step of the process that is at work now, and goes on."""
    newest = here.done(name)[-1]
    here.until("it is in the middle of its work", lambda: here.done(name)[-1].step > newest.step + 2, 60)
    return newest


def lose(here: E2eCluster, loss: Loss, name: str = "job", limit: float = 240.0) -> Seen:
    """Do it; returns when the job has made a step that it never made before."""
    status = here.status(name)
    failures, attempt = status["failures"], status["attempt"]
    nodes = _nodes(loss, here.pods("head", name), here.pods("worker", name))
    newest = _in_its_work(here, name)
    began = time.time()
    loss.act(here, nodes)
    at: dict[str, float] = {}

    def new_step() -> Step | None:
        status = here.status(name)
        assert status.get("phase") not in ("Failed", "Succeeded"), here.picture()
        if status["failures"] > failures:
            at.setdefault("counted", time.time() - began)
        if status["attempt"] > attempt:
            at.setdefault("next", time.time() - began)
        return _new_step(here.done(name), newest, began) if "counted" in at else None

    first = here.until(f"{loss.name}: a new step", new_step, limit)
    again = [step for step in _others(here.done(name), newest, began) if step.step < first.step]
    return Seen(loss.name, at["counted"], at.get("next"), first.at - began, len(again))


def lose_alone(here: E2eCluster, loss: Loss, name: str = "job", limit: float = ALONE) -> float | None:
    """The same to a RayJob that nobody but KubeRay looks after; None when it makes no new step in time."""
    here.until("it works", lambda: here.done(name), 180)
    newest = _in_its_work(here, name)
    pods = (here.kube.list("pods", f"ray.io/node-type={role}") for role in ("head", "worker"))
    nodes = _nodes(loss, *pods)
    began = time.time()
    loss.act(here, nodes)
    while time.time() < began + limit:
        time.sleep(0.5)
        if first := _new_step(here.done(name), newest, began):
            return first.at - began
    return None


def _nodes(loss: Loss, heads: list[Object], workers: list[Object]) -> list[str]:
    pods = [*heads[: loss.pools.count(HEADS)], *workers[: loss.pools.count(SPOT)]]
    return [str(pod["spec"]["nodeName"]) for pod in pods]


def _others(done: list[Step], lost: Step, began: float) -> list[Step]:
    """What other processes have done since."""
    return [step for step in done if step.process != lost.process and step.at > began]


def _new_step(done: list[Step], lost: Step, began: float) -> Step | None:
    """The first step of another process that the lost one had not done: one that is only cut off goes on until then."""
    others = _others(done, lost, began)
    if not others:
        return None
    old = max(step.step for step in done if step.process == lost.process and step.at <= others[0].at)
    return next((step for step in others if step.step > old), None)


def handover(done: list[Step]) -> float:
    """Seconds from the last step of the process before the newest one to the first step of the newest."""
    newest = next(step for step in done if step.process == done[-1].process)
    before = max(step.at for step in done if step.at < newest.at and step.process != newest.process)
    return newest.at - before
