"""An attempt as a JobSet: plain scripts without Ray, one pod for each process.

 1. JobSet restarts the whole set when a pod is lost; every restart counts as a loss (`jobset_state`), so the tier's
    maxFailures ends it, never JobSet.
 2. A program that ends by itself with a failure (any exit code but those of SIGKILL and SIGTERM) fails the set at once:
    75 asks for a new attempt, 76 says that a newer one exists, anything else is the program's own error. What that
    means is for the decision core, which sees the exit codes on the pods.
 3. Jobs retry nothing: the restart is the JobSet's.
 4. All pods are on the tier's nodes: there is no head.

With one replicated job, RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set unless the template sets them, so that a
script for torch.distributed or spotladder.train needs no launcher. With several, what a rank is, is the template's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spotladder.api.problems import Path, dotted
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import PodRole
from spotladder.errors import InvalidSpec
from spotladder.workloads import jobset_state, names, shape
from spotladder.workloads.names import Origin
from spotladder.workloads.pods import Outfit, budget, copied, dressed, with_env
from spotladder.workloads.records import (
    COMPLETION_INDEX,
    DISRUPTION_BUDGETS,
    GVR,
    JOB_INDEX,
    JOBSETS,
)
from spotladder.workloads.shape import check
from spotladder.workloads.template import made_of, template_of
from spotladder.workloads.tiers import ResolvedTier
from spotladder.workloads.workload import Workload

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
    "podFailurePolicy": "is spotladder's: exit codes 75 and 76 have a meaning; remove it",
    "suspend": "is spotladder's: use spec.suspend",
    "ttlSecondsAfterFinished": "is spotladder's: attempts are removed when they are over; remove it",
}


class JobSetWorkload:
    """Implements `Workload`."""

    main: GVR = JOBSETS
    made: tuple[GVR, ...] = (DISRUPTION_BUDGETS, JOBSETS)
    watched: tuple[GVR, ...] = (JOBSETS,)

    def workers(self, job: TieredJob) -> int:
        spec = template_of(job, _FIELD).spec
        check(spec, shape.JOBSET, _AT)
        return sum(_pods(entry, index) for index, entry in enumerate(spec["replicatedJobs"]))

    def render(
        self, job: TieredJob, origin: Origin, tier: ResolvedTier, attempt: int, env: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        template, name = template_of(job, _FIELD), names.attempt_name(job.metadata.name, attempt)
        outfit, pods = Outfit.of(job, origin, tier, attempt, env), self.workers(job)
        jobset = made_of(template, JOBSETS, name=name, job=job, outfit=outfit, spec=_spec(template.spec, outfit, name))
        return [budget(name, job, outfit.labels, pods), jobset]

    read = staticmethod(jobset_state.read)


JOBSET: Workload = JobSetWorkload()


def _spec(given: Mapping[str, Any], outfit: Outfit, name: str) -> dict[str, Any]:
    _refuse(given, _OWNED, _AT)
    spec: dict[str, Any] = copied(given)
    jobs = spec["replicatedJobs"]
    for index, entry in enumerate(jobs):
        _job(entry, outfit, (*_JOBS, index))
    spec["failurePolicy"] = {
        "maxRestarts": NEVER_BY_ITSELF,
        "rules": [{"name": "ProgramEnded", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}],
    }
    coordinator = spec.setdefault("coordinator", {"replicatedJob": jobs[0]["name"]})
    if len(jobs) == 1:
        subdomain = (spec.get("network") or {}).get("subdomain") or name
        place = f"{coordinator.get('jobIndex', 0)}-{coordinator.get('podIndex', 0)}"
        _rank(jobs[0], f"{name}-{coordinator['replicatedJob']}-{place}.{subdomain}")
    return spec


def _job(entry: dict[str, Any], outfit: Outfit, at: Path) -> None:
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
    job["template"] = dressed(
        job["template"], outfit, PodRole.WORKER, outfit.tier.workers, (*inside, "template"), only_first=False
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
