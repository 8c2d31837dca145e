"""The types of the fields that the converters read, for each kind. `template_schema` has the notation."""

from __future__ import annotations

from spotladder.workloads.template_schema import JOBSET, POD_TEMPLATE, RAYJOB, Shape

_METADATA: Shape = {
    "name": str,
    "generateName": str,
    "namespace": str,
    "labels": {str: str},
    "annotations": {str: str},
}
_NAMED: Shape = [{"name": str}]
_JOB: Shape = {"parallelism": int, "completions": int, "template": POD_TEMPLATE}
_CLUSTER: Shape = RAYJOB["rayClusterSpec"]
_REPLICA: Shape = {"replicas": int, "template": POD_TEMPLATE}
_TYPE: Shape = {
    "count": int,
    "completions": int,
    "parallelisms": int,
    "rayStartParams": {},
    "resources": {"accelerators": {"gpu": {"count": int, "type": str}}},
}
_RUNTIME: Shape = {"mlPolicy": {"numNodes": int, "torch": {}}, "template": {"spec": JOBSET}}


def _object(spec: Shape) -> Shape:
    return {"metadata": _METADATA, "spec": spec}


SHAPES: dict[str, Shape] = {
    "RayJob": _object({**RAYJOB, "clusterSelector": {str: str}}),
    "RayCluster": _object(_CLUSTER),
    "JobSet": _object({**JOBSET, "failurePolicy": {"maxRestarts": int}}),
    "Job": _object(_JOB),
    "TrainingRuntime": _object(_RUNTIME),
    "ClusterTrainingRuntime": _object(_RUNTIME),
    "TrainJob": _object({
        "runtimeRef": {"name": str},
        "labels": {str: str},
        "annotations": {str: str},
        "trainer": {"image": str, "numNodes": int, "env": _NAMED, "resourcesPerNode": {"requests": {}, "limits": {}}},
        "podTemplateOverrides": [{"targetJobs": _NAMED, **POD_TEMPLATE}],
        "podSpecOverrides": [{"targetJobs": _NAMED, **POD_TEMPLATE}],
        "runtimePatches": [{"trainingRuntimeSpec": {"template": {"metadata": _METADATA, "spec": JOBSET}}}],
    }),
    "PyTorchJob": _object({
        "pytorchReplicaSpecs": {str: _REPLICA},
        "elasticPolicy": {},
        "runPolicy": {"schedulingPolicy": {}},
    }),
    "SkyPilot task": {
        "name": str, "run": str, "setup": str, "num_nodes": int, "envs": {}, "secrets": {},
        "resources": {"any_of": [{}], "ordered": [{}]}, "file_mounts": {},
    },
    "AIchorManifest": {
        "name": str,
        "builder": {"registry": str},
        "spec": {
            "operator": str,
            "image": str,
            "command": str,
            "types": {"Workers": [_TYPE], str: _TYPE},
            "storage": {"attachExistingPVCs": [{"name": str, "mountPoint": str}]},
        },
    },
}  # fmt: skip
