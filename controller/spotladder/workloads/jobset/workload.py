"""An attempt as a JobSet: plain scripts without Ray, one pod for each process.

 1. JobSet restarts the whole set when a pod is lost. Every restart counts as a loss (`jobset.state`), so the tier's
    maxFailures limits the restarts, not JobSet.
 2. A program that ends by itself with a failure (any exit code except those of SIGKILL and SIGTERM) fails the set at
    once: 75 requests a new attempt, 76 means that a newer one exists, 77 that the checkpoint store refuses the
    credentials; any other code is the program's own error. The decision core reads the exit codes from the pods.
 3. Jobs do not retry pods: JobSet restarts the set.
 4. All pods run on the tier's nodes, except those of replicated jobs beside the tier (`api.groups`): a JobSet has no
    head. The loss of any pod restarts the set, but only losses on the tier are failures.
 5. JobSet derives names and label values of at most 63 characters from the set's name, so the name is truncated to
    fit.

With one replicated job, RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set unless the template sets them, so that a
script for torch.distributed or spotladder.train needs no launcher. With several replicated jobs, the template must set
them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from spotladder.api.default_image import default_image
from spotladder.api.fields import LONGEST_LABEL, LONGEST_RAYJOB_NAME
from spotladder.api.groups import on_tier
from spotladder.api.jobset_workload import job_groups, pods_of
from spotladder.api.problems import Path, Refusals, dotted, quoted
from spotladder.api.program_folder import started
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import Instant, PodRole
from spotladder.errors import InvalidSpec
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, APIResource
from spotladder.workloads import names, template_schema
from spotladder.workloads.exits import KILLED_CONTAINER
from spotladder.workloads.guards import Guarded, budget
from spotladder.workloads.jobset import state
from spotladder.workloads.jobset.operator_silence import silent_jobset
from spotladder.workloads.jobset.records import JOBSETS, JobSetRecord
from spotladder.workloads.names import Origin
from spotladder.workloads.network_policy import declared, policy
from spotladder.workloads.operators import silent_scheduler
from spotladder.workloads.pods import PodOverlay, copied, with_env, with_overlay
from spotladder.workloads.program_container import native_sidecars, program_of
from spotladder.workloads.records import COMPLETION_INDEX, JOB_INDEX, Made, Object
from spotladder.workloads.template import made_of, template_of
from spotladder.workloads.template_schema import check
from spotladder.workloads.tiers import PlacedTier
from spotladder.workloads.workload import AttemptObjects, ObjectPatch, WorkloadKind

NEVER_BY_ITSELF = 2_147_483_647
"""JobSet's maximum of maxRestarts: the tier's maxFailures limits the restarts instead."""

_FIELD = "jobSet"
_AT: Path = ("spec", "workload", _FIELD, "template", "spec")
_JOBS: Path = (*_AT, "replicatedJobs")
_PORT = "29500"


class JobSetKind:
    """Implements `WorkloadKind`."""

    main: APIResource = JOBSETS
    made: tuple[APIResource, ...] = (DISRUPTION_BUDGETS, NETWORK_POLICIES, JOBSETS)
    records: Mapping[APIResource, Callable[[Object], Made]] = MappingProxyType({JOBSETS: JobSetRecord.of})
    install = "JobSet is not installed in {cluster}: install the jobset chart"

    def workers(self, job: TieredJob) -> int:
        spec = template_of(job, _FIELD).spec
        check(spec, template_schema.JOBSET, _AT)
        here = on_tier(job_groups(spec), job.spec.elsewhere)
        return sum(pods_of(entry) for entry, is_here in zip(spec["replicatedJobs"], here, strict=True) if is_here)

    def longest_name(self, spec: Mapping[str, Any]) -> int:
        return longest_name(spec)

    def render(
        self, job: TieredJob, origin: Origin, tier: PlacedTier, attempt: int, env: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        template = template_of(job, _FIELD)
        check(template.spec, template_schema.JOBSET, _AT)
        name = names.attempt_name(job.metadata.name, attempt, longest_name(template.spec))
        overlay = PodOverlay.of(job, origin, tier, attempt, env)
        jobset = made_of(
            template, JOBSETS, name=name, job=job, overlay=overlay, spec=_spec(template.spec, overlay, name)
        )
        guarded = Guarded.of(overlay, name)
        pods = [entry["template"]["spec"]["template"]["spec"] for entry in jobset["spec"]["replicatedJobs"]]
        public = {port for pod in pods for port in declared(pod)}
        return [budget(guarded), policy(guarded, public, ()), jobset]

    def ray_version(self, rendered: Sequence[Mapping[str, Any]]) -> None:  # noqa: ARG002 – the port's
        return None

    def refusal(self, objects: AttemptObjects) -> str:  # noqa: ARG002 – the port's
        return ""

    def silent(self, objects: AttemptObjects, now: Instant) -> str:
        return silent_jobset(objects, now) or silent_scheduler(objects.pods, now)

    def driver_output(self, objects: AttemptObjects) -> None:  # noqa: ARG002 – the port's
        return None

    def replacing(
        self,
        objects: AttemptObjects,  # noqa: ARG002 – the port's
        pods: Collection[str],  # noqa: ARG002
        *,
        remove: bool,  # noqa: ARG002
    ) -> ObjectPatch | None:
        return None  # the size of a Job is fixed: `read` says that nothing can be replaced

    def resizing(self, objects: AttemptObjects, workers: int) -> ObjectPatch | None:  # noqa: ARG002 – the port's
        return None

    begun = staticmethod(state.begun)
    read = staticmethod(state.read)


JOBSET: WorkloadKind = JobSetKind()


def _spec(given: Mapping[str, Any], overlay: PodOverlay, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = copied(given)
    jobs = spec["replicatedJobs"]
    here = on_tier(job_groups(given), overlay.tier.groups.keys())
    alone = sum(map(pods_of, jobs)) == 1
    refusals = Refusals()
    for index, (entry, is_here) in enumerate(zip(jobs, here, strict=True)):
        with refusals.kept():
            _job(entry, overlay, (*_JOBS, index), is_here=is_here, alone=alone)
    refusals.check()
    spec["failurePolicy"] = {
        "maxRestarts": NEVER_BY_ITSELF,
        "rules": [{"name": "ProgramEnded", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}],
    }
    spec["coordinator"] = _coordinator(spec)
    if len(jobs) == 1:
        address = f"{name}-{_coordinator_place(spec)}.{_subdomain(spec) or name}"
        _rank(jobs[0], address, (*_JOBS, 0, "template", "spec", "template"))
    return spec


def longest_name(spec: Mapping[str, Any]) -> int:
    """Maximum length of the name of a JobSet with this spec.

    JobSet derives `NAME-JOB-0-0-abcde` (a pod; its webhook checks it) and `NAME-JOB-0-0.SUBDOMAIN` (the label
    `jobset.sigs.k8s.io/coordinator`, which the API server checks), where SUBDOMAIN is NAME unless the spec has one.

    Raises:
        InvalidSpec: the template's own names leave no room; names the field.
    """
    longest = LONGEST_RAYJOB_NAME
    for index, entry in enumerate(spec["replicatedJobs"]):
        inner = entry["template"]["spec"]
        last_job = (entry.get("replicas") or 1) - 1
        last_pod = (inner.get("completions") or inner.get("parallelism") or 1) - 1
        room = LONGEST_LABEL - len(f"-{entry['name']}-{last_job}-{last_pod}-abcde")
        _enough(room, entry["name"], (*_JOBS, index, "name"))
        longest = min(longest, room)
    subdomain = _subdomain(spec)
    room = LONGEST_LABEL - len(f"-{_coordinator_place(spec)}.{subdomain}")
    if subdomain:
        _enough(room, subdomain, (*_AT, "network", "subdomain"))
        return min(longest, room)
    chosen = ("coordinator", "replicatedJob") if spec.get("coordinator") else ("replicatedJobs", 0, "name")
    _enough(room // 2, _coordinator(spec)["replicatedJob"], (*_AT, *chosen))
    return min(longest, room // 2)


def _enough(room: int, given: str, at: Path) -> None:
    if room < names.SHORTEST_LIMIT:
        message = (
            f"{quoted(given)} is too long: JobSet joins it with the attempt's name and indexes into names of "
            f"at most {LONGEST_LABEL} characters; shorten it"
        )
        raise InvalidSpec(message, path=dotted(at))


def _coordinator(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"replicatedJob": spec["replicatedJobs"][0]["name"], **(spec.get("coordinator") or {})}


def _coordinator_place(spec: Mapping[str, Any]) -> str:
    """`workers-0-0`: replicated job, index of its job, index of the pod."""
    chosen = _coordinator(spec)
    return f"{chosen['replicatedJob']}-{chosen.get('jobIndex', 0)}-{chosen.get('podIndex', 0)}"


def _subdomain(spec: Mapping[str, Any]) -> str:
    """The subdomain of the set's pods in the template; "" for JobSet's default, the set's name."""
    return (spec.get("network") or {}).get("subdomain") or ""


def _job(entry: dict[str, Any], overlay: PodOverlay, at: Path, *, is_here: bool, alone: bool) -> None:
    job = entry["template"]["spec"]
    inside = (*at, "template", "spec")
    pods = job.setdefault("parallelism", 1)
    job.setdefault("completions", pods)
    job.setdefault("completionMode", "Indexed")
    job["backoffLimit"] = 0
    program = program_of(job["template"], (*inside, "template"))
    job["podFailurePolicy"] = {"rules": _failure_rules(job["template"], program, alone=alone)}
    if not program.get("image"):
        program["image"] = default_image(program)
    folder = overlay.job.spec.checkpoints.program_folder
    if folder is not None and is_here:
        if not program.get("command"):
            place = job["template"]["spec"]["containers"].index(program)
            message = (
                "is required with checkpoints.programFolder: the command of the program, which is otherwise known only "
                "to the image"
            )
            raise InvalidSpec(message, path=dotted((*inside, "template", "spec", "containers", place, "command")))
        program["command"] = started(program["command"], folder)
    role = PodRole.WORKER if is_here else PodRole.AUXILIARY
    placement = overlay.tier.workers if is_here else overlay.tier.beside(entry["name"])
    job["template"] = with_overlay(job["template"], overlay, role, placement, (*inside, "template"), program=program)


def _failure_rules(template: Mapping[str, Any], program: Mapping[str, Any], *, alone: bool) -> list[dict[str, Any]]:
    """What a failed pod means, by the exit codes of its program container and of the containers that run before it.

    A pod whose program ended well has failed, too, if another container of it failed. JobSet would run the whole set
    again. With `Ignore` the other programs of the set end undisturbed; a single program (`alone`) does not run again.
    """
    killed, native = list(KILLED_CONTAINER), native_sidecars(template)
    before = [one for one in template["spec"].get("initContainers") or () if one.get("name") not in native]
    own = [{"containerName": one["name"]} if one.get("name") else {} for one in (program, *before)]
    rules: list[dict[str, Any]] = [
        {"action": "FailJob", "onExitCodes": {**named, "operator": "NotIn", "values": killed}} for named in own
    ]
    if len(template["spec"]["containers"]) > 1:
        rules += [
            {"action": "Count", "onExitCodes": {**own[0], "operator": "In", "values": killed}},
            {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob" if alone else "Ignore", "onExitCodes": {"operator": "NotIn", "values": [0]}},
        ]
    return rules


def _rank(entry: Mapping[str, Any], address: str, at: Path) -> None:
    """The rank of a pod, if it is one number: one job of many pods, or many jobs of one pod."""
    job = entry["template"]["spec"]
    jobs, pods = entry.get("replicas", 1), job["parallelism"]
    if jobs > 1 and pods > 1:
        return
    field = f"metadata.labels['{JOB_INDEX}']" if jobs > 1 else f"metadata.annotations['{COMPLETION_INDEX}']"
    entries: list[dict[str, Any]] = [
        {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": field}}},
        {"name": "WORLD_SIZE", "value": str(jobs * pods)},
        {"name": "MASTER_ADDR", "value": address},
        {"name": "MASTER_PORT", "value": _PORT},
    ]
    with_env(program_of(job["template"], at), entries, unless_set=True)
