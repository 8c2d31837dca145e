"""The ways in which someone who may only write TieredJobs in a namespace tries to get more: one table for the pure
function and for the API server. docs/threat-model.md links to it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spotladder.api.tenancy import TenantRule

_RAY = ("workload", "ray", "template", "spec")
_CLUSTER = (*_RAY, "rayClusterSpec")
_HEAD = (*_CLUSTER, "headGroupSpec")
_POD = (*_HEAD, "template", "spec")
_WORKER = (*_CLUSTER, "workerGroupSpecs", 0, "template", "spec")
_CONTAINER = (*_POD, "containers", 0)
_CONTEXT = (*_CONTAINER, "securityContext")
_HOST = {"name": "host", "hostPath": {"path": "/"}}
_SUBMITTER = (*_RAY, "submitterPodTemplate")
_SUBMITTED = {"serviceAccountName": "training", "containers": [{"name": "submitter"}]}


@dataclass(frozen=True)
class Way:
    """`set` are the changed fields of a job's spec, `said` is a part of the refusal. `at_admission`: the API server
    refuses it at submit; otherwise the controller before a launch. `secret` is the content of the job's Secret."""

    name: str
    said: str
    set: Mapping[tuple[str | int, ...], Any]
    at_admission: bool = False
    secret: Mapping[str, str] = field(default_factory=dict)

    def spec(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """A job's spec with the changes."""
        spec: dict[str, Any] = copy.deepcopy(dict(base))
        for path, value in self.set.items():
            place: Any = spec
            for name in path[:-1]:
                place = place[name] if isinstance(name, int) else place.setdefault(name, {})
            place[path[-1]] = value
        return spec


def _at(*path: str | int) -> tuple[str | int, ...]:
    return path


def _pod() -> dict[str, Any]:
    containers = [{"name": "ray", "image": "rayproject/ray:2.58.1"}]
    return {"rayStartParams": {}, "template": {"spec": {"serviceAccountName": "training", "containers": containers}}}


def _group(name: str) -> dict[str, Any]:
    return {"groupName": name, "replicas": 1, **_pod()}


def spec(uri: str = "s3://team-a/jobs") -> dict[str, Any]:
    """The spec of a job that its namespace may run."""
    return {
        "tiers": [{"name": "spot", "capacityTier": "spot"}],
        "checkpoints": {"uri": uri, "interval": "30s"},
        "workload": {
            "ray": {
                "template": {
                    "spec": {
                        "entrypoint": "python train.py",
                        "rayClusterSpec": {"headGroupSpec": _pod(), "workerGroupSpecs": [_group("workers")]},
                    }
                }
            }
        },
    }


def rules(namespace: str, prefix: str = "") -> Sequence[TenantRule]:
    """The administrator's document for the table. `prefix` is that of the names of CapacityTiers."""
    return [TenantRule.model_validate(document(namespace, prefix))]


def document(namespace: str, prefix: str = "") -> dict[str, Any]:
    return {
        "namespaces": [namespace],
        "contact": "#ml-platform",
        "capacityTiers": [f"{prefix}spot", f"{prefix}east"],
        "serviceAccounts": ["training"],
        "uris": ["s3://team-a"],
    }


LEVEL = "Pod Security level"
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
_OWN_SECRET: Mapping[tuple[str | int, ...], Any] = {("checkpoints", "credentials"): {"secretName": "bucket"}}


def _endpoint(name: str, url: str) -> Way:
    return Way(name, "is not allowed in this namespace", _OWN_SECRET, secret={**KEYS, "AWS_ENDPOINT_URL": url})


def _tolerating(**toleration: Any) -> Mapping[tuple[str | int, ...], Any]:
    return {(*_WORKER, "tolerations"): [toleration]}


WAYS: tuple[Way, ...] = (
    Way("a folder of the node in the head", LEVEL, {(*_POD, "volumes"): [_HOST]}, True),
    Way("a folder of the node in a worker", LEVEL, {(*_WORKER, "volumes"): [_HOST]}, True),
    Way("a folder of the node in KubeRay's submitter", LEVEL,
        {_SUBMITTER: {"spec": {**_SUBMITTED, "volumes": [_HOST]}}}, True),
    Way("a privileged container", LEVEL, {(*_CONTEXT, "privileged"): True}, True),
    Way("a privileged init container", LEVEL,
        {(*_POD, "initContainers"): [{"name": "i", "image": "x", "securityContext": {"privileged": True}}]}, True),
    Way("a privileged container of Ray's autoscaler", LEVEL,
        {(*_CLUSTER, "autoscalerOptions"): {"securityContext": {"privileged": True}}}),
    Way("the processes of the node", LEVEL, {(*_POD, "hostPID"): True}, True),
    Way("the shared memory of the node", LEVEL, {(*_POD, "hostIPC"): True}, True),
    Way("the network of the node", LEVEL, {(*_POD, "hostNetwork"): True}, True),
    Way("a port of the node", LEVEL, {(*_CONTAINER, "ports"): [{"containerPort": 80, "hostPort": 80}]}),
    Way("the capability SYS_ADMIN", LEVEL, {(*_CONTEXT, "capabilities"): {"add": ["SYS_ADMIN"]}}),
    Way("the capability IPC_LOCK without EFA", LEVEL, {(*_CONTEXT, "capabilities"): {"add": ["IPC_LOCK"]}}),
    Way("no seccomp filter", LEVEL, {(*_CONTEXT, "seccompProfile"): {"type": "Unconfined"}}),
    Way("no AppArmor profile", LEVEL, {(*_CONTEXT, "appArmorProfile"): {"type": "Unconfined"}}),
    Way("no AppArmor profile, by annotation", LEVEL,
        {(*_HEAD, "template", "metadata"):
         {"annotations": {"container.apparmor.security.beta.kubernetes.io/ray": "unconfined"}}}),
    Way("another SELinux type", LEVEL, {(*_CONTEXT, "seLinuxOptions"): {"type": "spc_t"}}),
    Way("the whole of /proc", LEVEL, {(*_CONTEXT, "procMount"): "Unmasked"}),
    Way("a sysctl of the node", LEVEL,
        {(*_POD, "securityContext"): {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}),
    Way("a process of a Windows host", LEVEL, {(*_CONTEXT, "windowsOptions"): {"hostProcess": True}}),
    Way("requests of the kubelet to another host", LEVEL,
        {(*_CONTAINER, "livenessProbe"): {"httpGet": {"host": "169.254.169.254", "port": 80}}}),
    Way("a toleration of all taints", "taints of all nodes", _tolerating(operator="Exists"), True),
    Way("a toleration of the control plane", "tolerations",
        _tolerating(key="node-role.kubernetes.io/control-plane", operator="Exists"), True),
    Way("a toleration of the system nodes", "tolerations",
        _tolerating(key="CriticalAddonsOnly", operator="Exists"), True),
    Way("a node by its name", "nodeName", {(*_POD, "nodeName"): "control-plane"}),
    Way("a node by its name, in the submitter", "bypasses the scheduler",
        {_SUBMITTER: {"spec": {**_SUBMITTED, "nodeName": "n"}}}),
    Way("a priority class that is not listed", "priorityClasses", {(*_POD, "priorityClassName"): "high"}, True),
    Way("a priority class of the system", "system-node-critical",
        {(*_POD, "priorityClassName"): "system-node-critical"}, True),
    Way("a priority as a number", "set by priority classes only", {(*_POD, "priority"): 2_000_000_000}),
    Way("a priority class of Kueue", "priorityClasses",
        {(*_RAY[:-1], "metadata"): {"labels": {"kueue.x-k8s.io/priority-class": "high"}}}, True),
    Way("a priority class of Kueue, of a pod", "priorityClasses",
        {(*_HEAD, "template", "metadata"): {"labels": {"kueue.x-k8s.io/priority-class": "high"}}}),
    Way("a service account that is not listed", "serviceAccounts", {(*_POD, "serviceAccountName"): "deployer"}, True),
    Way("a service account by its older field", "serviceAccounts", {(*_WORKER, "serviceAccount"): "deployer"}),
    Way("Ray's autoscaler, which may change RayClusters", "rayAutoscaling",
        {(*_CLUSTER, "enableInTreeAutoscaling"): True}, True),
    Way("a load balancer", "a Service or an Ingress", {(*_HEAD, "serviceType"): "LoadBalancer"}),
    Way("a Service with the address of another", "a Service or an Ingress",
        {(*_HEAD, "headService"): {"spec": {"externalIPs": ["10.0.0.1"]}}}),
    Way("an Ingress", "a Service or an Ingress", {(*_HEAD, "enableIngress"): True}),
    Way("annotations of a Service", "a Service or an Ingress",
        {(*_CLUSTER, "headServiceAnnotations"): {"external-dns.alpha.kubernetes.io/hostname": "bank.example"}}),
    Way("a RayCluster of another job", "must not be set", {(*_RAY, "clusterSelector"): {"ray.io/cluster": "theirs"}}),
    Way("a CapacityTier that is not listed", "capacityTiers", {_at("tiers", 0, "capacityTier"): "reserved"}, True),
    Way("a CapacityTier that is not listed, for a group", "capacityTiers",
        {_at("tiers", 0, "groups"): {"data": {"capacityTier": "reserved"}},
         (*_CLUSTER, "workerGroupSpecs"): [_group("workers"), _group("data")]}, True),
    Way("a cluster that is not listed", "clusters", {_at("tiers", 0, "capacityTier"): "east"}),
    Way("the bucket of another team", "is not allowed", {_at("checkpoints", "uri"): "s3://team-b/jobs"}, True),
    Way("the bucket of another team, by ..", "..", {_at("checkpoints", "uri"): "s3://team-a/../b"}, True),
    Way("a file of the controller", "is not allowed", {_at("checkpoints", "uri"): "file:///var/run/secrets"}, True),
    _endpoint("the metadata service of the cloud as an endpoint", "http://169.254.169.254"),
    _endpoint("the API server as an endpoint", "https://10.0.0.1:6443"),
    _endpoint("the controller's own machine as an endpoint", "http://127.0.0.1:8080"),
    Way("a policy from another package", "policy", {_at("policy"): "os:system"}),
)  # fmt: skip
"""Each is one change of `spec()`. Direct calls of the API are in tests/kube/test_persona.py: RBAC refuses them."""
