"""One test's namespace, machines and jobs. Every wait has a limit and reports the actual state when it expires."""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from spotladder.checkpoints import outputs
from spotladder.checkpoints.entries import Commit
from spotladder.records import stored, stored_reading
from spotladder.records.recorded import Recorded
from tests.e2e.bucket import NAME, BucketServer
from tests.e2e.image import pinned
from tests.e2e.kube import Kube, Object
from tests.e2e.provider import ProvidedCluster
from tests.e2e.steps import ReportedStep, StepCollector

T = TypeVar("T")

PROGRAMS = Path(__file__).parent / "programs"
GIVE_UP = 900.0
"""Seconds after which a wait fails. It is many times what a wait needs: no test fails because its machine is busy. How
long each reaction takes is measured in tests/bench."""

HEADS = "head"
"""The pool of the heads."""

SHARED = "heads"
"""Its machine, which exists from the start and also runs the installed controllers."""

SECRET = "bucket"
_numbers = itertools.count(1)


@dataclass
class E2eCluster:
    """Use through the fixture `world`."""

    cluster: ProvidedCluster
    kube: Kube
    bucket: BucketServer
    reported: StepCollector
    image: str
    own_heads: str = HEADS
    nodes: dict[str, list[str]] = field(default_factory=dict)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        return self.kube.namespace

    # --- resources --------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """The namespace, the bucket's credentials and the programs."""
        programs = {path.name: path.read_text() for path in PROGRAMS.glob("*.py")}
        self.kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        self.kube.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": SECRET, "namespace": self.namespace},
                "stringData": dict(self.bucket.environment),
            },
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "programs", "namespace": self.namespace},
                "data": programs,
            },
        )

    def pool(self, name: str, machines: int, **spec: Any) -> str:
        """Create a CapacityTier with this number of machines; returns its name."""
        tier = f"{self.namespace}-{name}"
        spot = "on-demand" not in name
        price = {"perNodeHour": "0.12" if spot else "0.40", "onDemandPerNodeHour": "0.40"}
        self.kube.apply({
            "apiVersion": "spotladder.io/v1alpha1",
            "kind": "CapacityTier",
            "metadata": {"name": tier},
            "spec": {
                "capacityType": "spot" if spot else "on-demand",
                "provider": "generic",
                "extraSelectors": {"pool": tier},
                "headSelectors": {"pool": self.own_heads},
                "price": price,
                **spec,
            },
        })  # fmt: skip
        self.nodes.setdefault(name, [])
        self.give(name, machines)
        return tier

    def give(self, pool: str, machines: int = 1) -> list[str]:
        """Add machines to a pool; returns their names."""
        names = [f"n{next(_numbers)}" for _ in range(machines)]
        if names:
            self.cluster.add(f"{self.namespace}-{pool}", *names)
            self.nodes[pool] += names
        return names

    def heads(self, machines: int) -> None:
        """Machines only for the heads of this test's jobs, so that they can be lost."""
        self.own_heads = f"{self.namespace}-{HEADS}"
        self.nodes.setdefault(HEADS, [])
        self.give(HEADS, machines)

    # --- user actions -----------------------------------------------------------------------------------------------

    def submit(self, *tiers: str | Object, name: str = "job", program: str = "chain.py", **spec: Any) -> None:
        """A TieredJob on these pools, in this order."""
        workload = spec.pop("workload", None) or {"ray": {"template": {"spec": self.ray(program)}}}
        self.kube.apply({
            "apiVersion": "spotladder.io/v1alpha1",
            "kind": "TieredJob",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "tiers": [self.tier(tier) for tier in tiers],
                "grace": "20s",
                "checkpoints": self.checkpoints,
                "workload": workload,
                **spec,
            },
        })  # fmt: skip

    def submit_alone(self, pool: str, name: str = "job", program: str = "chain.py") -> None:
        """The RayJob of a user without spotladder, with the same program and library."""
        environment = {
            "SPOTLADDER_JOB": name,
            "SPOTLADDER_NAMESPACE": self.namespace,
            "SPOTLADDER_ATTEMPT": "1",
            "SPOTLADDER_TIER": pool,
            "SPOTLADDER_URI": self.checkpoints["uri"],
            "SPOTLADDER_INTERVAL": self.checkpoints["interval"],
        }
        spec = self.ray(program, submissionMode="HTTPMode")
        cluster = spec["rayClusterSpec"]
        for group, place in ((cluster["headGroupSpec"], HEADS), (cluster["workerGroupSpecs"][0], pool)):
            pod = group["template"]["spec"]
            pod["nodeSelector"] = {"pool": f"{self.namespace}-{place}"}
            pod["containers"][0]["env"] += [{"name": key, "value": value} for key, value in environment.items()]
            pod["containers"][0]["envFrom"] = [{"secretRef": {"name": SECRET}}]
        cluster["workerGroupSpecs"][0] |= {"minReplicas": 2, "maxReplicas": 2}
        self.kube.apply({
            "apiVersion": "ray.io/v1",
            "kind": "RayJob",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        })  # fmt: skip

    def tier(self, tier: str | Object) -> Object:
        """A tier with the name of its pool."""
        given = {"name": tier} if isinstance(tier, str) else tier
        limits = {"maxFailures": 0, "provisionTimeout": "3m"}
        return {"capacityTier": f"{self.namespace}-{given['name']}", **limits, **given}

    @property
    def checkpoints(self) -> Object:
        credentials = {"secretName": SECRET}
        return {"uri": f"s3://{NAME}/{self.namespace}", "interval": "5steps", "credentials": credentials}

    def ray(self, program: str, **more: Any) -> Object:
        """A RayJob of a head without CPUs and two workers."""

        def group(cpus: str, memory: str) -> Object:
            return {"rayStartParams": {"num-cpus": cpus}, "template": {"spec": self.pod(memory)}}

        return {
            "entrypoint": f"python /programs/{program}",
            "rayClusterSpec": {
                "rayVersion": pinned("ray"),
                "headGroupSpec": group("0", "1Gi"),
                "workerGroupSpecs": [{"groupName": "workers", "replicas": 2, **group("1", "512Mi")}],
            },
            **more,
        }

    def pod(self, memory: str, **container: Any) -> Object:
        """A pod of the test's image, with the programs in it."""
        return {
            "containers": [
                {
                    "name": "program",
                    "image": self.image,
                    "imagePullPolicy": "Never",
                    "resources": {"requests": {"memory": memory}},
                    "env": [{"name": "STEPS", "value": self.reported.address}],
                    "volumeMounts": [{"name": "programs", "mountPath": "/programs"}],
                    **container,
                }
            ],
            "volumes": [{"name": "programs", "configMap": {"name": "programs"}}],
        }

    def suspend(self, name: str = "job") -> None:
        """Run `spotladder suspend --wait`: the job commits and releases its machines."""
        self.kube.patch("tieredjob", name, {"spec": {"suspend": True}})
        self.until(f"{name} is suspended", lambda: self.status(name).get("phase") == "Suspended")

    # --- queries ----------------------------------------------------------------------------------------------------

    def status(self, name: str = "job") -> Object:
        """The TieredJob's status."""
        return dict((self.kube.get("tieredjob", name) or {}).get("status") or {})

    def condition(self, kind: str, name: str = "job") -> Object:
        """One of the job's conditions."""
        return next((found for found in self.status(name).get("conditions", []) if found["type"] == kind), {})

    def commits(self, name: str = "job") -> list[Commit]:
        """The content of the commit log."""
        return list(self.bucket.log(self.namespace, name).read().commits)

    def steps(self, name: str = "job") -> int:
        """The newest committed step."""
        return max((commit.step for commit in self.commits(name)), default=0)

    def printed(self, attempt: int, name: str = "job") -> dict[str, str]:
        """The stored output of an attempt, by source."""
        uid = (self.kube.get("tieredjob", name) or {})["metadata"]["uid"]
        store = outputs.of_job(self.bucket.log(self.namespace, name).store, uid)
        found = outputs.kept(store, attempt)
        return {output.source: text for output, text in zip(found, outputs.read(store, found), strict=True)}

    def records(self, name: str = "job") -> Recorded:
        """What the controllers have recorded of the job."""
        uid = (self.kube.get("tieredjob", name) or {})["metadata"]["uid"]
        return stored_reading.read(stored.of_job(self.bucket.log(self.namespace, name).store, uid))

    def done(self, name: str = "job") -> list[ReportedStep]:
        """Every step of the job's program, including repeated ones."""
        return self.reported.of(f"{self.namespace}/{name}")

    def pods(self, role: str = "", name: str = "job") -> list[Object]:
        """The job's pods that are not being deleted."""
        labels = f"spotladder.io/job={name}" + (f",spotladder.io/role={role}" if role else "")
        return [pod for pod in self.kube.list("pods", labels) if "deletionTimestamp" not in pod["metadata"]]

    def worker_node(self, name: str = "job") -> str:
        """A machine with a worker."""
        return str(next(pod["spec"]["nodeName"] for pod in self.pods("worker", name)))

    def path(self, name: str = "job") -> list[tuple[str, str]]:
        """Tier and reason of each ended attempt."""
        return [(attempt["tier"], attempt["reason"]) for attempt in self.status(name).get("attempts", [])]

    def last_on_each_tier(self, name: str = "job") -> list[tuple[str, str]]:
        """Tier and reason of the last attempt on each tier, in the order of the tiers. On a busy machine, Ray sometimes
        fails to start and the controller tries again on the same tier; `path` has these attempts too."""
        return [list(attempts)[-1] for _tier, attempts in groupby(self.path(name), lambda attempt: attempt[0])]

    # --- waits ------------------------------------------------------------------------------------------------------

    def until(self, what: str, met: Callable[[], T | None]) -> T:
        """Wait for a condition; if it is not met within `GIVE_UP`, report the actual state."""
        end = time.monotonic() + GIVE_UP
        last: object = None
        while time.monotonic() < end:
            last = met()
            if last:
                return last
            time.sleep(0.5)
        raise AssertionError(f"{what}: not in {GIVE_UP:g} s\n{self.picture()}")

    def runs(self, tier: str, name: str = "job", *, past: int = 0) -> None:
        """Wait until the job runs on this tier and its current attempt has committed a step after `past`."""

        def met() -> bool:
            status = self.status(name)
            assert status.get("phase") != "Failed", self.picture()
            e2e = (status.get("phase"), status.get("tier")) == ("Running", tier)
            return e2e and any(c.step > past and c.attempt == status["attempt"] for c in self.commits(name))

        self.until(f"{name} runs on {tier} past step {past}", met)

    def succeeds(self, name: str = "job") -> Object:
        """Wait until the job has succeeded; returns its status."""

        def met() -> bool:
            phase = self.status(name).get("phase")
            assert phase != "Failed", self.picture()
            return bool(phase == "Succeeded")

        self.until(f"{name} succeeds", met)
        status = self.status(name)
        assert status["progress"]["step"] == self.steps(name), "its last commit is not in its status"
        return status

    def is_the_uninterrupted_result(self, name: str = "job", steps: int = 100) -> None:
        """The last commit equals the result of one uninterrupted process, and no commit is from a fenced attempt."""
        log = self.bucket.log(self.namespace, name)
        history = log.read()
        attempts = [commit.attempt for commit in history.commits]
        assert attempts == sorted(attempts), f"an older attempt has committed after a newer one: {attempts}"
        with tempfile.TemporaryDirectory() as folder:
            found = log.resume(Path(folder))
            assert found is not None
            assert found.step == steps
            (value,) = {path.read_text() for path in Path(folder).rglob("value")}
        assert value == chain(steps)

    def picture(self) -> str:
        """All information that helps to find the cause."""
        texts = []
        for command in (
            ["get", "tieredjobs,rayjobs,rayclusters,pods", "-o", "wide"],
            ["get", "nodes", "-L", "pool"],
            ["get", "events", "--sort-by=.lastTimestamp"],
            ["logs", "-l", "ray.io/node-type=head", "--tail=40"],
            ["logs", "-l", "app.kubernetes.io/name=spotladder", "-n", "spotladder-system", "--tail=60"],
        ):
            try:
                texts.append(self.kube.run(*command)[-6000:])
            except AssertionError as error:
                texts.append(str(error)[-2000:])
        jobs = [{"name": job["metadata"]["name"], **job.get("status", {})} for job in self.kube.list("tieredjobs")]
        for job in jobs:
            job.pop("state", None)
        return "\n".join([json.dumps(jobs, indent=1), *texts])

    # --- removal ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Remove the machines and the namespace in any state."""
        for process in self.processes:
            process.kill()
            process.wait()
        installed = "tieredjobs" in self.kube.run("api-resources", "--api-group=spotladder.io")
        try:
            for job in self.kube.list("tieredjobs") if installed else ():
                self.kube.run("annotate", "tieredjob", job["metadata"]["name"], "spotladder.io/force-delete=true")
                self.kube.delete("tieredjob", job["metadata"]["name"], "--wait=false")
            for kind in ("rayjobs", "pods"):
                self.kube.run("delete", kind, "--all", "--wait=false", "--grace-period=0", "--force")
            # The API server answers 403 to a controller that creates an object in a namespace being deleted. A test may
            # have removed the controller: then the jobs remain.
            if installed:
                with suppress(AssertionError):
                    self.kube.run("wait", "--for=delete", "tieredjobs", "--all", "--timeout=30s")
        finally:
            names = {node["metadata"]["name"] for node in self.kube.list("nodes")}
            mine = [name for names in self.nodes.values() for name in names]
            self.cluster.remove_quietly([name for name in mine if name in names])
            for pool in self.nodes if installed else ():
                self.kube.delete("capacitytier", f"{self.namespace}-{pool}", "--wait=false")
            self.kube.delete("namespace", self.namespace, "--wait=false")


def chain(steps: int) -> str:
    """The result of `programs/chain.py`."""
    value = ""
    for step in range(1, steps + 1):
        value = hashlib.sha256(f"{value}{step}".encode()).hexdigest()
    return value


@contextmanager
def world(cluster: ProvidedCluster, bucket: BucketServer, reported: StepCollector, image: str) -> Iterator[E2eCluster]:
    """A namespace for one test."""
    made = E2eCluster(cluster, Kube(cluster.kubeconfig, f"t{next(_numbers)}"), bucket, reported, image)
    made.prepare()
    try:
        yield made
    finally:
        made.close()
