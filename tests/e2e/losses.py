"""Every way to lose a machine, done to a running job, and when the job made its next new step.

The same losses serve the test and the table of docs/benchmarks.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.steps import Step
from tests.e2e.world import World

SPOT = "spot"
ALONE = 120.0
"""Seconds that are waited for KubeRay alone; without an end it may take for ever."""


@dataclass(frozen=True)
class Loss:
    """One way. `act` does it to the machine that it is given; `head`: the head's machine, not a worker's."""

    name: str
    act: Callable[[World, str], None]
    head: bool = False
    noticed: bool = False


def _notice(grace: float) -> Callable[[World, str], None]:
    return lambda here, node: here.processes.append(here.cluster.notice(node, grace))


LOSSES = (
    Loss("node killed, its Node object stays", lambda here, node: here.cluster.kill(node)),
    Loss("node removed", lambda here, node: here.cluster.remove(node)),
    Loss("power cut", lambda here, node: here.cluster.kill(node, silent=True)),
    Loss("notice of 45 s", _notice(45), noticed=True),
    Loss("notice of 8 s", _notice(8), noticed=True),
    Loss("head's node removed", lambda here, node: here.cluster.remove(node), head=True),
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


def _in_its_work(here: World, name: str) -> Step:
    """A step of the process that is at work now, and goes on."""
    newest = here.done(name)[-1]
    here.until("it is in the middle of its work", lambda: here.done(name)[-1].step > newest.step + 2, 60)
    return newest


def lose(here: World, loss: Loss, name: str = "job", limit: float = 240.0) -> Seen:
    """Do it; returns when the job has made a step that it never made before."""
    status = here.status(name)
    failures, attempt = status["failures"], status["attempt"]
    node = str(here.pods("head" if loss.head else "worker", name)[0]["spec"]["nodeName"])
    newest = _in_its_work(here, name)
    began = time.time()
    loss.act(here, node)
    at: dict[str, float] = {}

    def new_step() -> bool:
        status = here.status(name)
        assert status.get("phase") not in ("Failed", "Succeeded"), here.picture()
        if status["failures"] > failures:
            at.setdefault("counted", time.time() - began)
        if status["attempt"] > attempt:
            at.setdefault("next", time.time() - began)
        return here.done(name)[-1].process != newest.process and "counted" in at

    here.until(f"{loss.name}: a new step", new_step, limit)
    done = here.done(name)
    old = max(step.step for step in done if step.process == newest.process)
    here.until("a step that is new", lambda: here.done(name)[-1].step > old, 60)
    first = next(step for step in here.done(name) if step.process != newest.process and step.step > old)
    again = sum(step.at > began and step.process != newest.process and step.step <= old for step in here.done(name))
    return Seen(loss.name, at["counted"], at.get("next"), first.at - began, again)


def lose_alone(here: World, loss: Loss, name: str = "job", limit: float = ALONE) -> float | None:
    """The same to a RayJob that nobody but KubeRay looks after; None when it makes no new step in time."""
    here.until("it works", lambda: here.done(name), 180)
    newest = _in_its_work(here, name)
    role = "head" if loss.head else "worker"
    pods = here.kube.list("pods", f"ray.io/node-type={role}")
    began = time.time()
    loss.act(here, str(pods[0]["spec"]["nodeName"]))
    while time.time() < began + limit:
        time.sleep(0.5)
        done = here.done(name)
        old = max(step.step for step in done if step.process == newest.process)
        for step in done:
            if step.process != newest.process and step.step > old:
                return step.at - began
    return None
