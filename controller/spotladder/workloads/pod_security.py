"""Kubernetes' Pod Security Standards (of version 1.35), applied to the pods of an attempt before it is launched.

The API server applies the level of a namespace to pods, not to the RayJobs and JobSets from which operators create
pods: a refused pod would look like one that waits for a node. A namespace without a level has `baseline` here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from spotladder.api.problems import Path

LABEL = "pod-security.kubernetes.io/enforce"
"""Label of a namespace with the level that it enforces."""

BASELINE, PRIVILEGED = "baseline", "privileged"

_CAPABILITIES = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip
_SYSCTLS = frozenset({
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
})  # fmt: skip
_SELINUX = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_VOLUMES = frozenset({
    "name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
    "secret",
})  # fmt: skip
_PROBES = (
    ("livenessProbe",),
    ("readinessProbe",),
    ("startupProbe",),
    ("lifecycle", "postStart"),
    ("lifecycle", "preStop"),
)
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


class PodTemplate(NamedTuple):
    """A pod template in an object. `at` is the path of its spec."""

    at: Path
    spec: Mapping[str, Any]
    annotations: Mapping[str, Any]


class Violation(NamedTuple):
    """A field of a pod that a level does not allow, and its value."""

    at: Path
    found: object


def pod_templates(thing: Any, at: Path = ()) -> Iterator[PodTemplate]:
    """All pod templates in an object, wherever they are. The container of Ray's autoscaler, which KubeRay adds to the
    head, counts as a pod of its own."""
    if isinstance(thing, Mapping):
        spec = thing.get("spec")
        if isinstance(spec, Mapping) and ("containers" in spec or "initContainers" in spec):
            yield PodTemplate((*at, "spec"), spec, mapping(mapping(thing.get("metadata")).get("annotations")))
        for name, inner in thing.items():
            if name == "autoscalerOptions" and inner:
                yield PodTemplate((*at, name), {"containers": [inner]}, {})
            yield from pod_templates(inner, (*at, name))
    elif isinstance(thing, list):
        for index, inner in enumerate(thing):
            yield from pod_templates(inner, (*at, index))


def violations(pod: PodTemplate, level: str, *, efa: bool = False) -> Iterator[Violation]:
    """The fields of the pod that the level does not allow. With `efa`, hostNetwork and IPC_LOCK are allowed."""
    if level == PRIVILEGED:
        return
    spec, at = pod.spec, pod.at
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name) and not (efa and name == "hostNetwork"):
            yield Violation((*at, name), spec[name])
    for name, value in pod.annotations.items():
        if name.startswith(_APPARMOR) and value == "unconfined":
            yield Violation((*at[:-1], "metadata", "annotations", name), value)
    yield from _volumes(spec, at, level)
    own = mapping(spec.get("securityContext"))
    yield from _context(own, (*at, "securityContext"))
    for index, sysctl in enumerate(mappings(own.get("sysctls"))):
        if str(sysctl.get("name")) not in _SYSCTLS:
            yield Violation((*at, "securityContext", "sysctls", index), sysctl.get("name"))
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(mappings(spec.get(field))):
            here = (*at, field, index)
            yield from _container(container, here, efa=efa)
            if level != BASELINE:
                yield from _restricted(mapping(container.get("securityContext")), own, (*here, "securityContext"))


def _volumes(spec: Mapping[str, Any], at: Path, level: str) -> Iterator[Violation]:
    for index, volume in enumerate(mappings(spec.get("volumes"))):
        for kind in volume:
            if kind == "hostPath" or (level != BASELINE and kind not in _VOLUMES):
                yield Violation((*at, "volumes", index, kind), mapping(volume[kind]).get("path", kind))


def _context(context: Mapping[str, Any], at: Path) -> Iterator[Violation]:
    """What neither a pod nor a container may have."""
    if mapping(context.get("windowsOptions")).get("hostProcess"):
        yield Violation((*at, "windowsOptions", "hostProcess"), True)
    for name in ("seccompProfile", "appArmorProfile"):
        if mapping(context.get(name)).get("type") == "Unconfined":
            yield Violation((*at, name, "type"), "Unconfined")
    labels = mapping(context.get("seLinuxOptions"))
    for name in ("type", "user", "role"):
        if labels.get(name) and (name != "type" or str(labels[name]) not in _SELINUX):
            yield Violation((*at, "seLinuxOptions", name), labels[name])


def _container(container: Mapping[str, Any], at: Path, *, efa: bool) -> Iterator[Violation]:
    context, here = mapping(container.get("securityContext")), (*at, "securityContext")
    yield from _context(context, here)
    if context.get("privileged"):
        yield Violation((*here, "privileged"), context["privileged"])
    if context.get("procMount", "Default") != "Default":
        yield Violation((*here, "procMount"), context["procMount"])
    for name in _texts(mapping(context.get("capabilities")).get("add")):
        if name not in _CAPABILITIES and not (efa and name == "IPC_LOCK"):
            yield Violation((*here, "capabilities", "add"), name)
    for index, port in enumerate(mappings(container.get("ports"))):
        if port.get("hostPort"):
            yield Violation((*at, "ports", index, "hostPort"), port["hostPort"])
    for path in _PROBES:
        for action in ("httpGet", "tcpSocket"):
            probe: Any = container
            for name in (*path, action):
                probe = mapping(mapping(probe).get(name))
            if probe.get("host"):
                yield Violation((*at, *path, action, "host"), probe["host"])


def _restricted(context: Mapping[str, Any], pod: Mapping[str, Any], at: Path) -> Iterator[Violation]:
    """The violations of the requirements that only the level `restricted` has."""
    merged = {**pod, **context}
    if context.get("allowPrivilegeEscalation") is not False:
        yield Violation((*at, "allowPrivilegeEscalation"), context.get("allowPrivilegeEscalation", "unset"))
    if merged.get("runAsNonRoot") is not True:
        yield Violation((*at, "runAsNonRoot"), merged.get("runAsNonRoot", "unset"))
    if merged.get("runAsUser") == 0:
        yield Violation((*at, "runAsUser"), 0)
    if not mapping(merged.get("seccompProfile")).get("type"):
        yield Violation((*at, "seccompProfile"), "unset")
    capabilities = mapping(context.get("capabilities"))
    if "ALL" not in _texts(capabilities.get("drop")):
        yield Violation((*at, "capabilities", "drop"), capabilities.get("drop", "unset"))
    for name in _texts(capabilities.get("add")):
        if name != "NET_BIND_SERVICE":
            yield Violation((*at, "capabilities", "add"), name)


def _texts(value: Any) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list) else []


def mapping(value: Any) -> Mapping[str, Any]:
    """The value, or an empty mapping if it is none: the API server refuses it then."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The value, or an empty list if it is none; an entry that is no mapping is an empty one."""
    return [mapping(entry) for entry in value] if isinstance(value, list) else []
