"""An attempt as a RayJob: KubeRay makes the cluster and submits the program, and retries nothing.

1. One RayJob for each attempt, under the attempt's name. KubeRay's own retries are off: they would come back on the
   same tier, from the start, beside ours.
2. A head that is lost ends the attempt. KubeRay is told not to bring it back, since it would run the program again
   from its start under the same id.
3. The cluster is shut down by KubeRay when the program has ended, so that nothing is paid for while no controller
   runs; a minute later, so that the controller sees why.
4. HTTPMode unless the template says otherwise: KubeRay submits the program itself and reads its exit code. A submitter
   can be lost, or its connection, and takes the attempt with it (K8sJobMode); or it ends before KubeRay has asked for
   the exit code, and nobody learns it (SidecarMode). Templates with a submitter's settings get K8sJobMode.
5. Pods are ready as soon as Ray is. KubeRay's own probe asks after ten seconds for the first time and then every five;
   a node of Ray is there in four, and the program waits for the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from spotladder.api.fields import LONGEST_RAYJOB_NAME
from spotladder.api.problems import Path, dotted
from spotladder.api.tieredjob import TieredJob
from spotladder.api.workload import workers_of
from spotladder.core.model import Instant, PodRole
from spotladder.errors import InvalidSpec
from spotladder.resources import DISRUPTION_BUDGETS, APIResource
from spotladder.workloads import names, template_schema
from spotladder.workloads.grace import drain_of
from spotladder.workloads.names import Origin
from spotladder.workloads.operators import silent_scheduler
from spotladder.workloads.pods import PodOverlay, budget, copied, variables, with_env, with_overlay
from spotladder.workloads.rayjob import state
from spotladder.workloads.rayjob.operator import silent_kuberay
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS, RayClusterRecord, RayJobRecord
from spotladder.workloads.records import Made, Object
from spotladder.workloads.template import made_of, template_of
from spotladder.workloads.template_schema import check
from spotladder.workloads.tiers import ResolvedTier
from spotladder.workloads.workload import AttemptObjects, WorkloadKind

KEPT_AFTER_THE_END = 60
"""Seconds that a cluster outlives its program."""

_FIELD = "ray"
_AT: Path = ("spec", "workload", _FIELD, "template", "spec")
_CLUSTER: Path = (*_AT, "rayClusterSpec")

_ANNOTATIONS = {"ray.io/disable-provisioned-head-restart": "true"}
"""KubeRay copies them, and the labels, onto the RayCluster."""

_HEALTH = {
    PodRole.HEAD: ("dashboard-port", "8265", "/api/gcs_healthz"),
    PodRole.WORKER: ("dashboard-agent-listen-port", "52365", "/api/local_raylet_healthz"),
}
"""Where a node of Ray says that it is well: the `ray start` parameter of the port, its default, the path."""

_READINESS_TIMES = {"initialDelaySeconds": 1, "periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": 25}
"""KubeRay's own 50 s until a node that was ready, or hangs, counts as not ready."""


class RayJobKind:
    """Implements `WorkloadKind`."""

    field = _FIELD
    main: APIResource = RAYJOBS
    made: tuple[APIResource, ...] = (DISRUPTION_BUDGETS, RAYJOBS)
    records: Mapping[APIResource, Callable[[Object], Made]] = MappingProxyType(
        {RAYJOBS: RayJobRecord.of, RAYCLUSTERS: RayClusterRecord.of}
    )
    ranks = False
    install = "KubeRay is not installed in {cluster}: install the kuberay-operator chart (1.5 or newer)"

    def renders(self, job: TieredJob) -> bool:
        return job.spec.workload.ray is not None

    def workers(self, job: TieredJob) -> int:
        return workers_of(template_of(job, _FIELD).spec)

    def longest_name(self, spec: Mapping[str, Any]) -> int:  # noqa: ARG002 – the port's
        return LONGEST_RAYJOB_NAME

    def render(
        self, job: TieredJob, origin: Origin, tier: ResolvedTier, attempt: int, env: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        template, name = template_of(job, _FIELD), names.attempt_name(job.metadata.name, attempt)
        overlay = PodOverlay.of(job, origin, tier, attempt, env)
        rayjob = made_of(
            template,
            RAYJOBS,
            name=name,
            job=job,
            overlay=overlay,
            spec=_spec(template.spec, overlay),
            annotations=_ANNOTATIONS,
        )
        return [budget(name, job, overlay.labels, self.workers(job) + 1), rayjob]

    def silent(self, objects: AttemptObjects, now: Instant) -> str:
        return silent_kuberay(objects, now) or silent_scheduler(objects.pods, now)

    begun = staticmethod(state.begun)
    refusal = staticmethod(state.refusal)
    read = staticmethod(state.read)


RAYJOB: WorkloadKind = RayJobKind()


def _spec(given: Mapping[str, Any], overlay: PodOverlay) -> dict[str, Any]:
    check(given, template_schema.RAYJOB, _AT)
    spec: dict[str, Any] = copied(given)
    _submission(spec)
    if "deletionStrategy" in spec and overlay.tier.queue:
        message = "cannot be used in a queue: Kueue requires shutdownAfterJobFinishes: true; remove it"
        raise InvalidSpec(message, path=dotted((*_AT, "deletionStrategy")))
    if "deletionStrategy" not in spec:
        spec.setdefault("shutdownAfterJobFinishes", True)
        if not spec["shutdownAfterJobFinishes"] and overlay.tier.queue:
            message = "must be true in a queue: Kueue frees the quota when the cluster is gone; remove it"
            raise InvalidSpec(message, path=dotted((*_AT, "shutdownAfterJobFinishes")))
        if spec["shutdownAfterJobFinishes"]:
            spec.setdefault("ttlSecondsAfterFinished", KEPT_AFTER_THE_END)
    cluster = spec["rayClusterSpec"]
    if not isinstance(cluster.get("headGroupSpec"), dict):
        message = "is required on a cluster: a mapping with template, the pod that the program runs in"
        raise InvalidSpec(message, path=dotted((*_CLUSTER, "headGroupSpec")))
    _group(cluster["headGroupSpec"], overlay, PodRole.HEAD, (*_CLUSTER, "headGroupSpec"))
    for index, group in enumerate(cluster["workerGroupSpecs"]):
        group.setdefault("groupName", f"workers-{index}" if index else "workers")
        _group(group, overlay, PodRole.WORKER, (*_CLUSTER, "workerGroupSpecs", index))
    if not cluster.get("authOptions"):  # a probe has no token; KubeRay's own brings it
        _probed(cluster["headGroupSpec"], PodRole.HEAD)
        for group in cluster["workerGroupSpecs"]:
            _probed(group, PodRole.WORKER)
    return spec


def _submission(spec: dict[str, Any]) -> None:
    spec["backoffLimit"] = 0
    submitter = bool(spec.get("submitterPodTemplate") or spec.get("submitterConfig"))
    mode = spec.setdefault("submissionMode", "K8sJobMode" if submitter else "HTTPMode")
    if mode == "InteractiveMode":
        message = "InteractiveMode waits for a person to submit the program: remove it"
        raise InvalidSpec(message, path=dotted((*_AT, "submissionMode")))
    if mode == "K8sJobMode":
        spec["submitterConfig"] = {**(spec.get("submitterConfig") or {}), "backoffLimit": 0}


def _group(group: dict[str, Any], overlay: PodOverlay, role: PodRole, at: Path) -> None:
    placement = overlay.tier.head if role is PodRole.HEAD else overlay.tier.workers
    group.setdefault("rayStartParams", {})
    template = with_overlay(group.get("template") or {}, overlay, role, placement, (*at, "template"), only_first=True)
    group["template"] = template
    drain = drain_of(template["spec"]["terminationGracePeriodSeconds"], overlay.tier.notice)
    ray = template["spec"]["containers"][0]
    with_env(ray, variables({"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": str(drain)}), unless_set=True)


def _probed(group: dict[str, Any], role: PodRole) -> None:
    parameter, default, path = _HEALTH[role]
    port = str(group["rayStartParams"].get(parameter, default))
    if port.isdigit():  # what else stands there is for Ray to refuse
        asked = {"httpGet": {"path": path, "port": int(port)}, **_READINESS_TIMES}
        group["template"]["spec"]["containers"][0].setdefault("readinessProbe", asked)
