"""The variables with which Kubeflow's operators connect the processes of PyTorch, for pods of a JobSet.

spotladder sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for one replicated job. torchrun reads the variables of
its options (PET_…), and with several replicated jobs all of them must be set. JobSet gives each pod the address of its
coordinator, the rank 0, and the index of its Job among all Jobs of the set as labels.
"""

from __future__ import annotations

from typing import Any

from spotladder.api.accelerators import accelerators
from spotladder.workloads.records import COMPLETION_INDEX

PORT = "29500"
COORDINATOR = "jobset.sigs.k8s.io/coordinator"
GLOBAL_INDEX = "jobset.sigs.k8s.io/job-global-index"


def label(name: str, key: str) -> dict[str, Any]:
    """A variable with the value of one of the pod's labels."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{key}']"}}}


def completion_index(name: str) -> dict[str, Any]:
    """A variable with the index of the pod in its Job."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{COMPLETION_INDEX}']"}}}


def environment(
    container: dict[str, Any], nodes: int, processes: Any, *, split: bool, elastic: Any = None
) -> list[dict[str, Any]]:
    """The variables of a container. `processes` is the number of processes of a node; if it is None, torchrun starts
    one for each accelerator, as in Kubeflow. `split`: the master is a replicated job of its own. `elastic` is the
    elasticPolicy of a PyTorchJob. Its pods meet at the first one, where torchrun serves its backend c10d.
    """
    rank = (lambda name: label(name, GLOBAL_INDEX)) if split else completion_index
    entries = [
        {"name": "PET_NNODES", "value": str(nodes)},
        rank("PET_NODE_RANK"),
        label("PET_MASTER_ADDR", COORDINATOR),
        {"name": "PET_MASTER_PORT", "value": PORT},
    ]
    if processes is None and accelerators(container):
        processes = "auto"
    if processes is not None:
        entries.append({"name": "PET_NPROC_PER_NODE", "value": str(processes)})
    if elastic:
        entries += [
            {"name": "PET_RDZV_BACKEND", "value": "c10d"},
            {"name": "PET_RDZV_ENDPOINT", "value": f"$(PET_MASTER_ADDR):{PORT}"},
            {"name": "PET_RDZV_ID", "value": str(elastic.get("rdzvId") or "job")},
        ]
    if split:
        entries += [
            rank("RANK"),
            {"name": "WORLD_SIZE", "value": str(nodes)},
            label("MASTER_ADDR", COORDINATOR),
            {"name": "MASTER_PORT", "value": PORT},
        ]
    return entries


def connect(container: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """Add the variables that the container does not set."""
    own = list(container.get("env") or ())
    have = {entry.get("name") for entry in own}
    container["env"] = [*(entry for entry in entries if entry["name"] not in have), *own]


def replicated(name: str, jobs: int, pods: int, template: dict[str, Any]) -> dict[str, Any]:
    """A replicated job of this number of Jobs, each with this number of pods."""
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"name": name, "replicas": jobs, "template": {"spec": spec}}
