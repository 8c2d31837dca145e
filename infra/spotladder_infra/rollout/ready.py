"""Waits until the workloads of a release are ready, and fails early if they cannot become ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from ruamel.yaml import YAML

from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout import manifest
from spotladder_infra.rollout.tools import Object, Tools

WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")
POLL_INTERVAL = 1.0
FAST_POLL_INTERVAL = 0.25
FAST_POLL_PERIOD = 10.0
"""Seconds during which a condition is polled more often: most are met by then."""

IMAGE_GRACE_PERIOD = 20.0
"""Seconds for which a pod may lack its image before the release fails: a registry may recover."""

FATAL = ("ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError")
"""Reasons of waiting containers that do not go away with time."""

RETRIED = ("ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff")
"""Reasons that may go away within IMAGE_GRACE_PERIOD."""


@dataclass(frozen=True, slots=True)
class AppsObject:
    """A Deployment, DaemonSet or StatefulSet."""

    kind: str
    namespace: str
    name: str


def workloads(rendered: str, namespace: str) -> list[AppsObject]:
    """The objects of a manifest that have pods. `namespace` is that of the release."""
    read = YAML(typ="safe", pure=True)
    objects = [read.load(text) for text in manifest.of_kinds(rendered, WORKLOADS)]
    return [
        AppsObject(entry["kind"], entry["metadata"].get("namespace", namespace), entry["metadata"]["name"])
        for entry in objects
    ]


def unready(found: Object) -> str:
    """Why a workload is not ready, by the rules of `kubectl rollout status`; "" if it is ready."""
    status, spec = found.get("status", {}), found.get("spec", {})
    name = f"{found['kind']} {found['metadata']['name']}"
    if status.get("observedGeneration", 0) < found["metadata"].get("generation", 0):
        return f"{name} is not observed yet"
    if found["kind"] == "DaemonSet":
        wanted = status.get("desiredNumberScheduled", 0)
        updated, ready = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
    else:
        wanted = spec.get("replicas", 1)
        updated = status.get("updatedReplicas", 0)
        ready = status.get("availableReplicas", status.get("readyReplicas", 0))
        surplus = status.get("replicas", 0) - updated
        if surplus > 0 and updated >= wanted:
            return f"{name}: {surplus} old pods still exist"
    if updated < wanted or ready < wanted:
        return f"{name}: {min(updated, ready)} of {wanted} pods are ready"
    return ""


def blocked(pods: Iterable[Object]) -> tuple[str, bool]:
    """Why pods cannot start, and whether waiting is useless; ("", False) without a known reason."""
    found = ("", False)
    for pod in pods:
        if "deletionTimestamp" in pod["metadata"]:
            continue
        status = pod.get("status", {})
        for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
            waiting = container.get("state", {}).get("waiting") or {}
            reason = waiting.get("reason", "")
            text = f"pod {pod['metadata']['name']}: {reason}: {container.get('image', '')}"
            if reason in FATAL:
                return text, True
            if reason in RETRIED:
                found = (text, False)
        for condition in status.get("conditions", []):
            if condition.get("type") == "PodScheduled" and condition.get("status") == "False" and not found[0]:
                found = (f"pod {pod['metadata']['name']} is not scheduled: {condition.get('message', '')}", False)
    return found


def wait(
    tools: Tools,
    wanted: Iterable[AppsObject],
    timeout: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Returns when all workloads are ready.

    Raises:
        EnvironmentFailure: A pod cannot start, or `timeout` seconds have passed.
    """
    remaining, stuck_since = list(wanted), None

    def unmet() -> str:
        nonlocal remaining, stuck_since
        waiting, why = [], ""
        for workload in remaining:
            found = tools.get(workload.kind.lower(), workload.name, "--namespace", workload.namespace)
            reason = f"{workload.kind} {workload.name} does not exist" if found is None else unready(found)
            if not reason:
                continue
            waiting.append(workload)
            cause, final = blocked(_pods(tools, found, workload.namespace)) if found else ("", False)
            why = f"{reason}{f' ({cause})' if cause else ''}"
            retried = any(word in cause for word in RETRIED)
            stuck_since = (stuck_since if stuck_since is not None else clock()) if retried else None
            if final or (stuck_since is not None and clock() - stuck_since >= IMAGE_GRACE_PERIOD):
                raise EnvironmentFailure(why)
        remaining = waiting
        return why

    if why := poll(unmet, timeout, clock, sleep):
        raise EnvironmentFailure(f"not ready after {timeout:g} s: {why}")


Unmet = TypeVar("Unmet", str, list[Object])


def poll(
    unmet: Callable[[], Unmet],
    timeout: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Unmet:
    """Calls `unmet` until what it returns is empty, or `timeout` seconds have passed. Returns what it returned last."""
    begun = clock()
    while (why := unmet()) and clock() - begun < timeout:
        sleep(FAST_POLL_INTERVAL if clock() - begun < FAST_POLL_PERIOD else POLL_INTERVAL)
    return why


def _pods(tools: Tools, workload: Object, namespace: str) -> list[Object]:
    labels = workload["spec"]["selector"].get("matchLabels", {})
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    return tools.items("pods", "--namespace", namespace, "--selector", selector)


def summary(tools: Tools, wanted: Iterable[AppsObject]) -> str:
    """`2/2`: ready workloads of all; "–" without workloads."""
    listed = list(wanted)
    ready = 0
    for workload in listed:
        found = tools.get(workload.kind.lower(), workload.name, "--namespace", workload.namespace)
        ready += bool(found) and not unready(found or {})
    return f"{ready}/{len(listed)}" if listed else "–"
