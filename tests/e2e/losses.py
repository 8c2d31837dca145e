"""All kinds of machine loss of a running job, and the time until the job's next new step.

The same losses serve the test and the table of tests/bench/results.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.e2e.kube import Object
from tests.e2e.steps import ReportedStep
from tests.e2e.world import HEADS, E2eCluster

SPOT = "spot"
INTERVAL = 5
"""Steps between two commits."""

COMMIT = 4.0
"""Maximum duration in seconds of a commit after a notice."""

ALONE = 90.0
"""Timeout in seconds for KubeRay alone, which may never recover."""


@dataclass(frozen=True)
class MachineLoss:
    """One kind of machine loss. `act` applies it to the job's machines: one in each of these pools. `again` is the
    maximum number of steps that are lost by it: an interval, and the step in progress. `notice` is the time in seconds
    that the tier promises."""

    name: str
    act: Callable[[E2eCluster, Sequence[str]], None]
    pools: tuple[str, ...] = (SPOT,)
    again: int = INTERVAL + 1
    notice: float = 30.0

    def spare(self, pool: str) -> int:
        """The number of machines of the pool that the job needs as replacements."""
        return self.pools.count(pool)

    @property
    def announced(self) -> bool:
        """Whether a notice comes before the loss."""
        return self.again == 1

    def tolerated(self, counted: float | None) -> int:
        """The maximum number of lost steps if the loss was counted after this time in seconds. On a busy machine, a
        short notice is sometimes observed too late for a commit."""
        return self.again if counted is not None and counted + COMMIT <= self.notice else INTERVAL + 1


def _notice(grace: float) -> Callable[[E2eCluster, Sequence[str]], None]:
    return lambda e2e, nodes: e2e.processes.extend(e2e.cluster.notice(node, grace) for node in nodes)


EVERY_MACHINE = (HEADS, SPOT, SPOT)
"""The pools of all machines of a job."""

LOSSES = (
    MachineLoss("node killed, its Node object stays", lambda e2e, nodes: e2e.cluster.kill(*nodes)),
    MachineLoss("node removed", lambda e2e, nodes: e2e.cluster.remove(*nodes)),
    MachineLoss("power cut", lambda e2e, nodes: e2e.cluster.kill(*nodes, silent=True)),
    MachineLoss("notice of 45 s", _notice(45), again=1),
    MachineLoss("notice of 8 s", _notice(8), again=1, notice=8.0),
    MachineLoss("head's node removed", lambda e2e, nodes: e2e.cluster.remove(*nodes), (HEADS,)),
    # Last: the cut-off process continues to report its steps for some time. It learns that it is fenced when a commit
    # is refused, and commits run beside the steps.
    MachineLoss(
        "all its nodes cut off",
        lambda e2e, nodes: e2e.cluster.partition(*nodes),
        EVERY_MACHINE,
        again=3 * INTERVAL + 1,
    ),
)


SILENT_LOSSES = (
    next(loss for loss in LOSSES if loss.name == "power cut"),
    MachineLoss("power cut of all its nodes", lambda e2e, nodes: e2e.cluster.kill(*nodes, silent=True), EVERY_MACHINE),
    MachineLoss("all its nodes without network", lambda e2e, nodes: e2e.cluster.isolate(*nodes), EVERY_MACHINE),
)
"""Losses of which no packet tells."""


@dataclass(frozen=True)
class Seen:
    """Seconds from the loss until the first new step, until it is counted (None: nothing counts it), and until the next
    attempt is created (None: recovered in place). `pause`: seconds from the last step before to the first new step.
    `again`: steps that were done again."""

    name: str
    first_step: float
    pause: float
    again: int
    counted: float | None = None
    next_attempt: float | None = None


def _in_its_work(e2e: E2eCluster, name: str) -> ReportedStep:
    """A step of the process that runs now."""
    newest = e2e.done(name)[-1]
    e2e.until("it is in the middle of its work", lambda: e2e.done(name)[-1].step > newest.step + 2)
    return newest


def lose(e2e: E2eCluster, loss: MachineLoss, name: str = "job") -> Seen:
    """Lose the machines; returns when the job has done a new step."""
    status = e2e.status(name)
    failures, attempt = status["failures"], status["attempt"]
    nodes = _nodes(loss, e2e.pods("head", name), e2e.pods("worker", name))
    newest = _in_its_work(e2e, name)
    began = time.time()
    loss.act(e2e, nodes)
    at: dict[str, float] = {}

    def new_step() -> ReportedStep | None:
        status = e2e.status(name)
        assert status.get("phase") not in ("Failed", "Succeeded"), e2e.picture()
        if status["failures"] > failures:
            at.setdefault("counted", time.time() - began)
        if status["attempt"] > attempt:
            at.setdefault("next", time.time() - began)
        return _new_step(e2e.done(name), newest, began) if "counted" in at else None

    first = e2e.until(f"{loss.name}: a new step", new_step)
    seen = _seen(e2e.done(name), loss, newest, first, began)
    return replace(seen, counted=at["counted"], next_attempt=at.get("next"))


def lose_alone(e2e: E2eCluster, loss: MachineLoss, name: str = "job") -> Seen | None:
    """The same for a RayJob without spotladder, which counts nothing; None if it does no new step in time."""
    e2e.until("it works", lambda: e2e.done(name))
    newest = _in_its_work(e2e, name)
    pods = (e2e.kube.list("pods", f"ray.io/node-type={role}") for role in ("head", "worker"))
    nodes = _nodes(loss, *pods)
    began = time.time()
    loss.act(e2e, nodes)
    while time.time() < began + ALONE:
        time.sleep(0.5)
        if first := _new_step(e2e.done(name), newest, began):
            return _seen(e2e.done(name), loss, newest, first, began)
    return None


def _seen(done: list[ReportedStep], loss: MachineLoss, lost: ReportedStep, first: ReportedStep, began: float) -> Seen:
    """What the steps show of a loss."""
    again = [step for step in _others(done, lost, began) if step.step < first.step]
    last = max(step.at for step in done if step.step < first.step and step.process != first.process)
    return Seen(loss.name, first.at - began, first.at - last, len(again))


def _nodes(loss: MachineLoss, heads: list[Object], workers: list[Object]) -> list[str]:
    pods = [*heads[: loss.pools.count(HEADS)], *workers[: loss.pools.count(SPOT)]]
    return [str(pod["spec"]["nodeName"]) for pod in pods]


def _others(done: list[ReportedStep], lost: ReportedStep, began: float) -> list[ReportedStep]:
    """The steps of other processes since then."""
    return [step for step in done if step.process != lost.process and step.at > began]


def _new_step(done: list[ReportedStep], lost: ReportedStep, began: float) -> ReportedStep | None:
    """The first new step of another process: a process that is only cut off continues until then."""
    others = _others(done, lost, began)
    if not others:
        return None
    old = max(step.step for step in done if step.process == lost.process and step.at <= others[0].at)
    return next((step for step in others if step.step > old), None)


def handover(done: list[ReportedStep]) -> float:
    """Seconds from the last step of the process before the newest one to the first step of the newest."""
    newest = next(step for step in done if step.process == done[-1].process)
    before = max(step.at for step in done if step.at < newest.at and step.process != newest.process)
    return newest.at - before
