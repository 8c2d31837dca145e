"""Converts a PyTorchJob of Kubeflow's training operator into a JobSet.

If master and workers have the same pod template, all are pods of one replicated job, and the master is the pod with
index 0. Otherwise the master is a replicated job of its own, and each worker is a Job of a second one.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from spotladder.api.template import inner
from spotladder.conversion import jobset, limits, skeleton, torch
from spotladder.conversion.draft import Draft, plain
from spotladder.conversion.source import Options, Source

_CONTAINER = "pytorch"


def from_pytorchjob(source: Source, options: Options, _others: list[Source]) -> Draft:
    """A TieredJob of a PyTorchJob."""
    spec = deepcopy(dict(source.data.get("spec") or {}))
    roles = spec.pop("pytorchReplicaSpecs", None)
    if not isinstance(roles, dict) or not roles:
        raise source.refused("is required: the pods of the job", "spec", "pytorchReplicaSpecs")
    for role, given in roles.items():
        if not isinstance(given, dict) or not isinstance(inner(given, "template", "spec"), dict):
            raise source.refused("is required: the pod template", "spec", "pytorchReplicaSpecs", role, "template")
    elastic = spec.pop("elasticPolicy", None) or {}
    processes = spec.pop("nprocPerNode", None) or elastic.get("nProcPerNode")
    jobs = grouped(roles, processes, elastic)
    draft = skeleton.draft_of(source, options, "jobSet", {"replicatedJobs": jobs})
    for role, given in roles.items():
        skeleton.leftovers(
            draft,
            {key: value for key, value in given.items() if key not in ("replicas", "template")},
            f"pytorchReplicaSpecs.{role}.",
            "is set by spotladder, which restarts lost pods",
        )
    _policy(draft, spec.pop("runPolicy", None) or {})
    skeleton.leftovers(draft, spec, "spec.")
    rest = {key: value for key, value in elastic.items() if key not in ("rdzvId", "nProcPerNode") and value != "c10d"}
    if rest:
        draft.dropped(
            f"Removed elasticPolicy: {plain(rest)}. A JobSet trains with a fixed number of pods; after a loss all of "
            "them start again. For fewer workers use Ray Train and spec.elastic."
        )
    return jobset.finished(draft, source.name, "-(?:master|worker)-0", usual=_CONTAINER)


def grouped(roles: dict[str, Any], processes: Any, elastic: dict[str, Any]) -> list[dict[str, Any]]:
    """The replicated jobs of a master and workers, connected as by Kubeflow."""
    roles = {name.lower(): given for name, given in roles.items() if _pods(given)} or roles
    pods = {name: _pods(given) for name, given in roles.items()}
    nodes, templates = sum(pods.values()), {name: given["template"] for name, given in roles.items()}
    master, worker = templates.get("master"), templates.get("worker")
    split = master is not None and worker is not None and master != worker
    for template in templates.values():
        for container in template.get("spec", {}).get("containers") or ():
            if len(template["spec"]["containers"]) == 1 or container.get("name") == _CONTAINER:
                torch.connect(container, torch.environment(container, nodes, processes, split=split, elastic=elastic))
    if not split:
        return [torch.replicated("workers", 1, nodes, next(iter(templates.values())))]
    return [
        torch.replicated("master", 1, 1, templates["master"]),
        torch.replicated("worker", pods["worker"], 1, templates["worker"]),
    ]


def _pods(given: Any) -> int:
    count = given.get("replicas") if isinstance(given, dict) else 0
    return 1 if count is None else int(count)


def _policy(draft: Draft, policy: dict[str, Any]) -> None:
    limits.limit_duration(draft, policy.pop("activeDeadlineSeconds", None), "runPolicy.activeDeadlineSeconds")
    limits.retry(draft, policy.pop("backoffLimit", None), "runPolicy.backoffLimit")
    limits.suspended(draft, policy.pop("suspend", None))
    queue = (policy.get("schedulingPolicy") or {}).get("queue")
    skeleton.leftovers(draft, policy, "runPolicy.", "is set by spotladder, which asks for all pods and cleans up")
    if queue:
        draft.dropped(f"The queue {plain(queue)} is not Kueue's: name a LocalQueue in the tiers' field queue.")
