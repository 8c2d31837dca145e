"""`make test-soak MINUTES=60 SEED=1`: 15 honest jobs train while nodes die, the API server hangs, the bucket refuses,
and the leader is killed; in the second half 5 jobs attack. The figures go to `.soak`, by seed."""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tests.e2e import image, provider
from tests.e2e.kube import Kube, Object
from tests.e2e.losses import SPOT
from tests.e2e.site import SYSTEM, E2eSite, install, installed
from tests.e2e.world import E2eCluster
from tests.soak import plan
from tests.soak.attacks import TRAINS, Attackers, endless_bucket, light_job
from tests.soak.figures import Figures, MachineLost, again, disturbed, problems, recovery

JOBS = [f"job-{number}" for number in range(15)]
OF_TWO_RANKS, MACHINES = JOBS[:3], 8

API_SERVER_HANGS, SAMPLE_INTERVAL = 20.0, 15.0
"""Seconds for which the API server does not answer, and between two samples of the leader's memory."""

OURS = "app.kubernetes.io/managed-by=spotladder"
KINDS = "jobsets,rayjobs,rayclusters,jobs,pods,networkpolicies,poddisruptionbudgets"


@dataclass
class Soak:
    """`lost` has each loss: its time, its kind and a job that had a pod on the machine. `memory` has the time, the
    leader's pod and its bytes. `outages` has the beginning and the end of each outage."""

    site: E2eSite
    honest: E2eCluster
    attackers: Attackers
    alive: list[str]
    dead: list[str] = field(default_factory=list)
    lost: list[tuple[float, str, str]] = field(default_factory=list)
    memory: list[tuple[float, str, int]] = field(default_factory=list)
    outages: list[tuple[float, float]] = field(default_factory=list)
    refused_from: float = 0.0
    attacked_from: float = 0.0

    def begin(self) -> None:
        """Submit the honest jobs, and wait until each has committed."""
        for name in JOBS:
            workload = light_job(self.honest, *TRAINS, ranks=2 if name in OF_TWO_RANKS else 1)
            log = {**self.honest.checkpoints, "interval": "10steps"}
            self.honest.submit({"name": SPOT, "maxFailures": -1}, name=name, workload=workload, checkpoints=log)
        for name in JOBS:
            self.honest.runs(SPOT, name)

    def run(self, planned: tuple[plan.Disturbance, ...]) -> None:
        """Everything in the plan, in its time; returns when every job trains again."""
        began = time.time()
        for one in planned:
            while (wait := began + one.at - time.time()) > 0:
                self.sample()
                time.sleep(min(wait, SAMPLE_INTERVAL))
            if one.what != plan.ATTACK:
                print(f"{time.time() - began:7.1f} s  {one.what}", flush=True)
            self.act(one)
        now = time.time()
        for name in JOBS:
            self.honest.until(f"{name} trains", lambda job=name: self.honest.done(job)[-1].at > now)  # type: ignore[misc]

    def act(self, one: plan.Disturbance) -> None:
        match one.what:
            case plan.ATTACK:
                if not self.attacked_from:
                    self.attacked_from = time.time()
                    self.attackers.begin()
                self.attackers.act()
            case plan.BUCKET_REFUSES | plan.BUCKET_ANSWERS:
                self.site.bucket.refuse(one.what == plan.BUCKET_REFUSES)
                if one.what == plan.BUCKET_REFUSES:
                    self.refused_from = time.time()
                else:
                    self.outages.append((self.refused_from, time.time()))
            case plan.API_SERVER_HANGS:
                began = time.time()
                with self.site.cluster.stopped("apiserver"):
                    time.sleep(API_SERVER_HANGS)
                self.outages.append((began, time.time()))
            case plan.LEADER_KILLED:
                self.system.delete("pod", self.leader()[0], "--grace-period=0", "--force")
            case _:
                self.lose(one)

    def lose(self, one: plan.Disturbance) -> None:
        """Lose a machine, add another one, and remove the Node object of the one before."""
        loss, node = plan.LOSSES[one.what], self.alive.pop(int(one.choice * len(self.alive)))
        there = (pod for pod in self.honest.kube.list("pods", "spotladder.io/job") if works_on(node, pod))
        jobs = {pod["metadata"]["labels"]["spotladder.io/job"] for pod in there}
        self.lost += [(time.time(), loss.name, job) for job in sorted(jobs)]
        loss.act(self.honest, [node])
        self.alive += self.honest.give(SPOT)
        self.site.cluster.remove_quietly(self.dead)
        self.dead = [] if loss.announced else [node]

    @property
    def system(self) -> Kube:
        return Kube(self.site.cluster.kubeconfig, SYSTEM)

    def leader(self) -> tuple[str, str]:
        """The leader's pod, and the id of its process there."""
        holders = [lease["spec"].get("holderIdentity") or "" for lease in self.system.list("leases")]
        pod, process, _ = next(holder for holder in holders if holder.startswith("spotladder-")).rsplit("-", 2)
        return pod, process

    def sample(self) -> None:
        """Record the leader's memory; nothing while there is no leader."""
        with suppress(AssertionError, StopIteration):
            pod, process = self.leader()
            status = self.system.run("exec", pod, "--", "cat", f"/proc/{process}/status")
            self.memory += [(time.time(), pod, int(size) << 10) for size in re.findall(r"VmRSS:\s+(\d+)", status)]

    def end(self, hostile: E2eCluster) -> list[str]:
        """Check the weights of the honest jobs, delete everything, and return what is wrong."""
        for name in JOBS:
            self.honest.suspend(name)
            self.honest.is_the_uninterrupted_result(name, steps=self.honest.steps(name))
        self.site.cluster.remove_quietly([node for node in self.honest.nodes[SPOT] if node not in self.alive])
        for world in (hostile, self.honest):
            world.kube.run("delete", "tieredjobs", "--all", "--timeout=300s")
            world.until("no object is left", lambda of=world: not of.kube.list(KINDS, OURS))  # type: ignore[misc]
        return [f"RayJob {name} was created" for name in sorted(self.attackers.got)]

    def losses(self) -> list[MachineLost]:
        """`lost`, with the seconds until the job's next new step."""
        return [MachineLost(at, what, job, recovery(self.honest.done(job), at)) for at, what, job in self.lost]

    def figures(self, half: float) -> Figures:
        """What `problems` judges."""
        figures, losses = Figures(attacks=self.attackers.attacks()), self.losses()
        for loss in losses:
            if not plan.LOSSES[loss.kind].announced:
                undisturbed = figures.attacked if loss.at > self.attacked_from else figures.alone
                delayed = disturbed(loss.at, self.outages) or again(loss, losses)
                (figures.disturbed if delayed else undisturbed).append(loss.recovery)
        warm = self.attacked_from + half * 0.2
        last = self.memory[-1][1] if self.memory else ""
        figures.memory.extend(size for at, pod, size in self.memory if pod == last and at > warm)
        return figures


def works_on(node: str, pod: Object) -> bool:
    """Whether the pod is on this machine, has not ended and is not being deleted."""
    ended = pod["status"].get("phase") not in ("Pending", "Running") or "deletionTimestamp" in pod["metadata"]
    return pod["spec"].get("nodeName") == node and not ended


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    given = parser.parse_args()
    planned = plan.plan(given.seed, given.minutes)
    if why := provider.missing():
        parser.error(why)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"seed {given.seed}, {given.minutes:g} min", flush=True)
    with installed("soak", image.build(), "kuberay", "jobset") as site, endless_bucket(site.cluster.host) as endpoint:
        system, allowed = Kube(site.cluster.kubeconfig, SYSTEM), replace(site.bucket, also=(endpoint,))
        install(system, site.tag, allowed, "rbac.secrets=true")
        with site.world() as honest, site.world() as hostile:
            honest.pool(SPOT, MACHINES)
            hostile.pool(SPOT, 2)
            soak = Soak(site, honest, Attackers(hostile, endpoint, honest, JOBS[0]), list(honest.nodes[SPOT]))
            soak.begin()
            soak.run(planned)
            figures = soak.figures(given.minutes * 30)
            out = image.ROOT / ".soak"
            out.mkdir(exist_ok=True)
            (out / f"{given.seed}.json").write_text(
                json.dumps({**vars(given), **vars(figures), "losses": soak.losses()}, indent=1)
            )
            found = [*problems(figures), *soak.end(hostile)]
    print(*found or ["good"], sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
