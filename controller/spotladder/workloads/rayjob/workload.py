"""An attempt as a RayJob: KubeRay creates the cluster and submits the program, and does not retry.

1. One RayJob for each attempt, with the attempt's name. KubeRay's own retries are off: they would repeat the program
   on the same tier from the start, beside the controller's attempts.
2. The loss of the head ends the attempt. KubeRay is configured not to replace the head, since it would run the program
   again from its start under the same id.
3. KubeRay shuts the cluster down after the program has ended, so that it costs nothing even if no controller runs. It
   waits a minute, so that the controller can read the reason.
4. HTTPMode unless the template sets another mode: KubeRay submits the program itself and reads its exit code. In
   K8sJobMode the loss of the submitter, or of its connection, ends the attempt. In SidecarMode the submitter may end
   before KubeRay has read the exit code. Templates with settings of a submitter get K8sJobMode.
5. Ray declares a node dead after at most 35 s of silence. With its own settings this takes up to 65 s, during which
   the other workers wait for a machine that is gone.
6. A head without workers on the tier trains itself: it is the attempt's only worker, on the tier's nodes. The sizes of
   groups beside the tier are left to Ray's autoscaler, if the template turns it on; those on the tier are fixed.
7. Pods are ready as soon as Ray is. KubeRay's own probe starts after ten seconds and repeats every five seconds, but a
   Ray node is ready after four, and the program waits for the last node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from spotladder.api.default_image import default_image
from spotladder.api.fields import LONGEST_RAYJOB_NAME
from spotladder.api.problems import Path, Refusals, dotted
from spotladder.api.program_folder import started_script
from spotladder.api.ray_workload import group_name, groups_on_tier, worker_groups, workers_of
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import Instant, PodRole
from spotladder.errors import InvalidSpec
from spotladder.output.stacks import WITH_ALL_STACKS
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, APIResource
from spotladder.versions import RAY, TESTED_RAY
from spotladder.workloads import names, template_schema
from spotladder.workloads.grace import drain_of
from spotladder.workloads.guards import Guarded, budget
from spotladder.workloads.names import Origin
from spotladder.workloads.network_policy import close, policy
from spotladder.workloads.operators import silent_scheduler
from spotladder.workloads.placement import Placement
from spotladder.workloads.pods import PodOverlay, copied, variables, with_env, with_overlay
from spotladder.workloads.program_container import ray_of
from spotladder.workloads.rayjob import state, surge
from spotladder.workloads.rayjob.authentication import authenticate, has_public_health, is_open, requires_token
from spotladder.workloads.rayjob.operator_silence import silent_kuberay
from spotladder.workloads.rayjob.ports import dashboard_ports, public_ports
from spotladder.workloads.rayjob.records import (
    RAYCLUSTERS,
    RAYJOBS,
    SUBMITTER,
    RayClusterRecord,
    RayJobRecord,
    driver_log,
    rayjob_of,
)
from spotladder.workloads.rayjob.version import given_version, ray_version
from spotladder.workloads.records import Made, Object
from spotladder.workloads.template import made_of, template_of
from spotladder.workloads.template_schema import check
from spotladder.workloads.tiers import PlacedTier
from spotladder.workloads.workload import AttemptObjects, DriverOutput, WorkloadKind

KEPT_AFTER_THE_END = 60
"""Seconds for which a cluster is kept after its program has ended."""

_OPEN = (
    f"Ray requires no token, since its version is unknown or older than {TESTED_RAY[0].rpartition('.')[0]}: its "
    "dashboard is closed to all pods but those of the job and KubeRay if the cluster's network implements "
    "NetworkPolicies, and open to all otherwise: set rayVersion to the version in the image"
)

_SUBMITTERS = 8
"""Number of attempts, the newest first, whose submitters reach the ports that control Ray."""

_FIELD = "ray"
_AT: Path = ("spec", "workload", _FIELD, "template", "spec")
_CLUSTER: Path = (*_AT, "rayClusterSpec")

_ANNOTATIONS = {"ray.io/disable-provisioned-head-restart": "true"}
"""Annotations that KubeRay copies, with the labels, to the RayCluster."""

_HEALTH = {
    PodRole.HEAD: ("dashboard-port", "8265", "/api/gcs_healthz"),
    PodRole.WORKER: ("dashboard-agent-listen-port", "52365", "/api/local_raylet_healthz"),
}
"""The health endpoint of a Ray node: the `ray start` parameter of the port, its default, the path."""

_READINESS_TIMES = {"initialDelaySeconds": 1, "periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": 25}
"""With KubeRay's own 50 s until a node that was ready, or hangs, counts as not ready."""


_HEAD_QUERIES = 150
"""The number of times, two seconds apart, that a worker asks Ray's GCS for the head before its start fails. With Ray's
own 20, the workers of an attempt crash when the head takes more than 40 s to register, for example on a busy node.
`startTimeout` limits the start."""

_HEALTH_CHECKS = {
    "RAY_health_check_period_ms": "2000",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "5",
}
"""How Ray's head checks the other nodes: a node that does not answer five times in succession is dead. A machine that
is only busy answers once within this time. Ray's own values are 3000, 10000 and 5."""

_ELASTIC_HEALTH_CHECKS = {**_HEALTH_CHECKS, "RAY_health_check_failure_threshold": "3"}
"""An elastic job waits for no new node when it has lost one: Ray's state of the lost node is correct after 21 s."""


class RayJobKind:
    """Implements `WorkloadKind`."""

    main: APIResource = RAYJOBS
    made: tuple[APIResource, ...] = (DISRUPTION_BUDGETS, NETWORK_POLICIES, RAYJOBS)
    records: Mapping[APIResource, Callable[[Object], Made]] = MappingProxyType(
        {RAYJOBS: RayJobRecord.of, RAYCLUSTERS: RayClusterRecord.of}
    )
    install = "KubeRay is not installed in {cluster}: install the kuberay-operator chart (1.5 or newer)"

    def workers(self, job: TieredJob) -> int:
        return workers_of(template_of(job, _FIELD).spec, job.spec.elsewhere)

    def longest_name(self, spec: Mapping[str, Any]) -> int:  # noqa: ARG002 – the port's
        return LONGEST_RAYJOB_NAME

    def render(
        self, job: TieredJob, origin: Origin, tier: PlacedTier, attempt: int, env: Mapping[str, str]
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
            annotations={**_ANNOTATIONS, **({names.HEAD_TRAINS: "true"} if _head_trains(template.spec, tier) else {})},
        )
        guarded, cluster = Guarded.of(overlay, name), rayjob["spec"]["rayClusterSpec"]
        network = policy(guarded, public_ports(cluster), _submitters(rayjob["spec"], job, attempt))
        if not requires_token(cluster):
            close(network, dashboard_ports(cluster))
        if is_open(cluster):
            rayjob["metadata"]["annotations"][names.TOKEN_REFUSED] = _OPEN
        return [budget(guarded), network, rayjob]

    def silent(self, objects: AttemptObjects, now: Instant) -> str:
        return silent_kuberay(objects, now) or silent_scheduler(objects.pods, now)

    def driver_output(self, objects: AttemptObjects) -> DriverOutput:
        rayjob = rayjob_of(objects)
        mode = "" if rayjob is None else rayjob.mode
        log_of = None if rayjob is None or not rayjob.error else driver_log
        if rayjob is not None and mode == "K8sJobMode":  # KubeRay creates a submitter Job with the attempt's name.
            return DriverOutput(SUBMITTER, f"job-name={rayjob.name}", log_of)
        return DriverOutput(SUBMITTER if mode == "SidecarMode" else "", log_of=log_of)

    ray_version = staticmethod(ray_version)
    begun = staticmethod(state.begun)
    refusal = staticmethod(state.refusal)
    read = staticmethod(state.read)
    replacing = staticmethod(surge.replacing)
    resizing = staticmethod(surge.resizing)


RAYJOB: WorkloadKind = RayJobKind()


def _spec(given: dict[str, Any], overlay: PodOverlay) -> dict[str, Any]:
    check(given, template_schema.RAYJOB, _AT)
    spec: dict[str, Any] = copied(given)
    spec["entrypoint"] = started_script(spec["entrypoint"], overlay.job.spec.checkpoints.program_folder)
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
        message = "is required on a cluster: a mapping with template, the pod template of the program"
        raise InvalidSpec(message, path=dotted((*_CLUSTER, "headGroupSpec")))
    _default_images(cluster)
    tier = overlay.tier
    head_at = (*_CLUSTER, "headGroupSpec")
    refusals = Refusals()
    role, placement = (PodRole.WORKER, tier.workers) if _head_trains(given, tier) else (PodRole.HEAD, tier.head)
    with refusals.kept():
        scales = bool(cluster.get("enableInTreeAutoscaling"))  # Ray's autoscaler runs in the head and calls the API.
        _group(cluster["headGroupSpec"], overlay, role, placement, head_at, is_head=True, calls_api=scales)
    cluster.setdefault("workerGroupSpecs", [])
    groups = worker_groups(spec)
    for index, (group, here) in enumerate(zip(groups, groups_on_tier(given, tier.groups), strict=True)):
        group["groupName"] = group_name(group, index)
        role, placement = PodRole.WORKER, tier.workers
        if not here:
            role, placement = PodRole.AUXILIARY, tier.beside(group["groupName"])
        elif cluster.get("enableInTreeAutoscaling"):  # The workers on the tier are a gang: their number is fixed.
            group["minReplicas"] = group["maxReplicas"] = group.get("replicas") or 0
        with refusals.kept():
            _group(group, overlay, role, placement, (*_CLUSTER, "workerGroupSpecs", index))
    refusals.check()
    authenticate(cluster)
    if has_public_health(cluster):
        _probed(cluster["headGroupSpec"], PodRole.HEAD)
        for group in groups:
            _probed(group, PodRole.WORKER)
    return spec


def _default_images(cluster: dict[str, Any]) -> None:
    """Give Ray's own image of the cluster's version to the Ray containers of the template that have none."""
    version = given_version(cluster) or RAY
    for group in (cluster["headGroupSpec"], *(cluster.get("workerGroupSpecs") or ())):
        with suppress(InvalidSpec):  # It is reported where the pod template is rendered.
            container = ray_of(group.get("template") or {}, ())
            if not container.get("image"):
                container["image"] = default_image(container, version)


def _submission(spec: dict[str, Any]) -> None:
    spec["backoffLimit"] = 0
    submitter = bool(spec.get("submitterPodTemplate") or spec.get("submitterConfig"))
    mode = spec.setdefault("submissionMode", "K8sJobMode" if submitter else "HTTPMode")
    if mode == "InteractiveMode":
        message = "InteractiveMode waits for a user to submit the program: remove it"
        raise InvalidSpec(message, path=dotted((*_AT, "submissionMode")))
    if mode == "K8sJobMode":
        spec["submitterConfig"] = {**(spec.get("submitterConfig") or {}), "backoffLimit": 0}


def _submitters(spec: Mapping[str, Any], job: TieredJob, attempt: int) -> list[str]:
    """The names of the Jobs with which KubeRay submits the programs of this attempt and of those before it, which may
    still run."""
    if spec["submissionMode"] != "K8sJobMode":
        return []
    return [
        names.attempt_name(job.metadata.name, number)
        for number in range(max(1, attempt - _SUBMITTERS + 1), attempt + 1)
    ]


def _head_trains(spec: dict[str, Any], tier: PlacedTier) -> bool:
    """Whether the head is the pod on the tier, because no worker group is."""
    return not any(groups_on_tier(spec, tier.groups))


def _group(
    group: dict[str, Any],
    overlay: PodOverlay,
    role: PodRole,
    placement: Placement,
    at: Path,
    *,
    is_head: bool = False,
    calls_api: bool = False,
) -> None:
    group.setdefault("rayStartParams", {})
    given, inside = group.get("template") or {}, (*at, "template")
    ray = ray_of(given, inside)
    given["spec"]["containers"].sort(key=lambda container: container is not ray)  # KubeRay runs Ray in the first.
    template = group["template"] = with_overlay(
        given, overlay, role, placement, inside, program=ray, calls_api=calls_api
    )
    if is_head:
        template["metadata"]["labels"][names.ROLE] = PodRole.HEAD.value
    drain = drain_of(template["spec"]["terminationGracePeriodSeconds"], overlay.tier.core.notice)
    settings = {**WITH_ALL_STACKS, "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": str(drain)}
    if not is_head:
        settings["RAY_NUM_REDIS_GET_RETRIES"] = str(_HEAD_QUERIES)
    else:
        settings |= _ELASTIC_HEALTH_CHECKS if overlay.job.spec.elastic else _HEALTH_CHECKS
    with_env(ray, variables(settings), unless_set=True)


def _probed(group: dict[str, Any], role: PodRole) -> None:
    parameter, default, path = _HEALTH[role]
    port = str(group["rayStartParams"].get(parameter, default))
    if port.isdigit():  # Ray rejects other invalid values.
        asked = {"httpGet": {"path": path, "port": int(port)}, **_READINESS_TIMES}
        group["template"]["spec"]["containers"][0].setdefault("readinessProbe", asked)
