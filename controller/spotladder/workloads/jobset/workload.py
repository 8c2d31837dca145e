"""An attempt as a JobSet: plain scripts without Ray, one pod for each process.

 1. JobSet restarts the whole set when a pod is lost; every restart counts as a loss (`jobset_state`), so the tier's
    maxFailures ends it, never JobSet.
 2. A program that ends by itself with a failure (any exit code but those of SIGKILL and SIGTERM) fails the set at once:
    75 asks for a new attempt, 76 says that a newer one exists, 77 that the checkpoint store refuses the credentials,
    anything else is the program's own error. What that means is for the decision core, which sees the exit codes on
    the pods.
 3. Jobs retry nothing: the restart is the JobSet's.
 4. All pods are on the tier's nodes: there is no head.
 5. JobSet makes names and label values of 63 characters at most from the set's name: the set's name is cut to fit.

With one replicated job, RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set unless the template sets them, so that a
script for torch.distributed or spotladder.train needs no launcher. With several, what a rank is, is the template's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from spotladder.api.fields import LONGEST_LABEL, LONGEST_RAYJOB_NAME
from spotladder.api.problems import Path, dotted, quoted
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import Instant, PodRole
from spotladder.errors import InvalidSpec
from spotladder.resources import DISRUPTION_BUDGETS, APIResource
from spotladder.workloads import names, template_schema
from spotladder.workloads.jobset import state
from spotladder.workloads.jobset.operator import silent_jobset
from spotladder.workloads.jobset.records import JOBSETS, JobSetRecord
from spotladder.workloads.names import Origin
from spotladder.workloads.operators import silent_scheduler
from spotladder.workloads.pods import PodOverlay, budget, copied, with_env, with_overlay
from spotladder.workloads.records import COMPLETION_INDEX, JOB_INDEX, Made, Object
from spotladder.workloads.template import made_of, template_of
from spotladder.workloads.template_schema import check
from spotladder.workloads.tiers import ResolvedTier
from spotladder.workloads.workload import AttemptObjects, WorkloadKind

NEVER_BY_ITSELF = 2_147_483_647
"""JobSet's largest maxRestarts: the tier's maxFailures decides, not JobSet."""

KILLED = (137, 143)
"""Exit codes of SIGKILL and SIGTERM: a pod that ends so was ended."""

_FIELD = "jobSet"
_AT: Path = ("spec", "workload", _FIELD, "template", "spec")
_JOBS: Path = (*_AT, "replicatedJobs")
_PORT = "29500"

_OWNED = {
    "failurePolicy": "is spotladder's: restarts are limited by maxFailures and restartPolicy.backoffLimit; remove it",
    "suspend": "is spotladder's: use spec.suspend",
    "managedBy": "is spotladder's: remove it",
    "ttlSecondsAfterFinished": "is spotladder's: attempts are removed when they are over; remove it",
}
_OWNED_OF_A_JOB = {
    "backoffLimit": "is spotladder's: the whole set is restarted instead; remove it",
    "backoffLimitPerIndex": "is spotladder's: the whole set is restarted instead; remove it",
    "podFailurePolicy": "is spotladder's: exit codes 75, 76 and 77 have a meaning; remove it",
    "suspend": "is spotladder's: use spec.suspend",
    "ttlSecondsAfterFinished": "is spotladder's: attempts are removed when they are over; remove it",
}


class JobSetKind:
    """Implements `WorkloadKind`."""

    field = _FIELD
    main: APIResource = JOBSETS
    made: tuple[APIResource, ...] = (DISRUPTION_BUDGETS, JOBSETS)
    records: Mapping[APIResource, Callable[[Object], Made]] = MappingProxyType({JOBSETS: JobSetRecord.of})
    ranks = True
    install = "JobSet is not installed in {cluster}: install the jobset chart"

    def renders(self, job: TieredJob) -> bool:
        return job.spec.workload.job_set is not None

    def workers(self, job: TieredJob) -> int:
        spec = template_of(job, _FIELD).spec
        check(spec, template_schema.JOBSET, _AT)
        return sum(_pods(entry, index) for index, entry in enumerate(spec["replicatedJobs"]))

    def longest_name(self, spec: Mapping[str, Any]) -> int:
        return longest_name(spec)

    def render(
        self, job: TieredJob, origin: Origin, tier: ResolvedTier, attempt: int, env: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        template, pods = template_of(job, _FIELD), self.workers(job)
        name = names.attempt_name(job.metadata.name, attempt, longest_name(template.spec))
        overlay = PodOverlay.of(job, origin, tier, attempt, env)
        jobset = made_of(
            template, JOBSETS, name=name, job=job, overlay=overlay, spec=_spec(template.spec, overlay, name)
        )
        return [budget(name, job, overlay.labels, pods), jobset]

    def begun(self, objects: AttemptObjects) -> bool:
        return state.begun(objects)

    def refusal(self, objects: AttemptObjects) -> str:  # noqa: ARG002 – the port's
        return ""

    def silent(self, objects: AttemptObjects, now: Instant) -> str:
        return silent_jobset(objects, now) or silent_scheduler(objects.pods, now)

    read = staticmethod(state.read)


JOBSET: WorkloadKind = JobSetKind()


def _spec(given: Mapping[str, Any], overlay: PodOverlay, name: str) -> dict[str, Any]:
    _refuse(given, _OWNED, _AT)
    spec: dict[str, Any] = copied(given)
    jobs = spec["replicatedJobs"]
    for index, entry in enumerate(jobs):
        _job(entry, overlay, (*_JOBS, index))
    spec["failurePolicy"] = {
        "maxRestarts": NEVER_BY_ITSELF,
        "rules": [{"name": "ProgramEnded", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}],
    }
    spec["coordinator"] = _coordinator(spec)
    if len(jobs) == 1:
        _rank(jobs[0], f"{name}-{_coordinator_place(spec)}.{_subdomain(spec) or name}")
    return spec


def longest_name(spec: Mapping[str, Any]) -> int:
    """Characters that a JobSet of this spec may have in its name.

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
    """The subdomain of the set's pods that the template chose; "" for JobSet's default, the set's name."""
    return (spec.get("network") or {}).get("subdomain") or ""


def _job(entry: dict[str, Any], overlay: PodOverlay, at: Path) -> None:
    job = entry["template"]["spec"]
    inside = (*at, "template", "spec")
    _refuse(job, _OWNED_OF_A_JOB, inside)
    pods = job.setdefault("parallelism", 1)
    job.setdefault("completions", pods)
    job.setdefault("completionMode", "Indexed")
    job["backoffLimit"] = 0
    job["podFailurePolicy"] = {
        "rules": [{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": list(KILLED)}}]
    }
    job["template"] = with_overlay(
        job["template"], overlay, PodRole.WORKER, overlay.tier.workers, (*inside, "template"), only_first=False
    )


def _rank(entry: Mapping[str, Any], address: str) -> None:
    """Which process a pod is, where that is one number: one job of many pods, or many jobs of one pod."""
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
    for container in job["template"]["spec"]["containers"]:
        with_env(container, entries, unless_set=True)


def _pods(entry: Mapping[str, Any], index: int) -> int:
    """Pods of one replicated job; also where it is checked to have what is relied on."""
    at: Path = (*_JOBS, index)
    job = (entry.get("template") or {}).get("spec") or {}
    if not job.get("template") or not entry.get("name"):
        raise InvalidSpec("needs name and template.spec.template: the pod that the program runs in", path=dotted(at))
    counts = (
        (entry.get("replicas"), (*at, "replicas")),
        (job.get("parallelism"), (*at, "template", "spec", "parallelism")),
    )
    pods = 1
    for count, path in counts:
        if count is not None and count < 1:
            raise InvalidSpec("must be at least 1", path=dotted(path))
        pods *= 1 if count is None else count
    return pods


def _refuse(given: Mapping[str, Any], owned: Mapping[str, str], at: Path) -> None:
    for name, why in owned.items():
        if given.get(name) not in (None, False):
            raise InvalidSpec(why, path=dotted((*at, name)))
