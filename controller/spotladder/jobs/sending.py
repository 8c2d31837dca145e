"""Applies one object of a file to the cluster by server-side apply and reports the changes."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass

from spotladder.api.yaml_text import as_yaml
from spotladder.clusters.errors import Conflict, NotFound
from spotladder.core.model import UpdateStrategy
from spotladder.errors import Refused
from spotladder.jobs.connected_cluster import ConnectedCluster, Object
from spotladder.jobs.preflight import exists
from spotladder.resources import CAPACITYTIERS, TIEREDJOBS, APIResource

_CONTEXT = 1  # unchanged lines around each change
_COMPARED_METADATA = ("labels", "annotations")


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of an apply: the new object; `created`, `configured` or `unchanged`; the changed lines; and the effect
    on the running attempt ("" if none)."""

    thing: Object
    word: str
    changes: tuple[str, ...] = ()
    effect: str = ""


async def send(cluster: ConnectedCluster, body: Object, *, update: bool) -> Sent:
    """Apply the object as the only manager of its fields. Raises Refused for an existing job, unless `update`."""
    kind = TIEREDJOBS if body["kind"] == "TieredJob" else CAPACITYTIERS
    name, namespace = body["metadata"]["name"], ""
    if kind.namespaced:
        namespace = body["metadata"].setdefault("namespace", cluster.namespace)
        if not update:
            try:
                # Without force, a job that another manager has created since the check is not overwritten.
                return Sent(await cluster.client.apply(kind, body), "created")
            except Conflict:
                raise Refused(exists(name, namespace)) from None
    before = await _current(cluster, kind, name, namespace)
    after = await cluster.client.apply(kind, body, force=True)
    if before is None:
        return Sent(after, "created")
    changes = difference(before, after)
    return Sent(after, "configured" if changes else "unchanged", changes, effect(before, after))


async def _current(cluster: ConnectedCluster, kind: APIResource, name: str, namespace: str) -> Object | None:
    """The object in the cluster; None if it does not exist."""
    try:
        return await cluster.client.get(kind, name, namespace)
    except NotFound:
        return None


def difference(before: Object, after: Object) -> tuple[str, ...]:
    """The changes as lines of a unified diff of the objects' YAML; empty if nothing changed."""
    lines = difflib.unified_diff(_lines(before), _lines(after), n=_CONTEXT, lineterm="")
    return tuple(line for line in lines if not line.startswith(("---", "+++", "@@")))


def effect(before: Object, after: Object) -> str:
    """The effect of the change on the running attempt; "" if no attempt runs or its pods do not change."""
    phase = (before.get("status") or {}).get("phase")
    if before["kind"] != TIEREDJOBS.kind or phase != "Running" or _pods(before) == _pods(after):
        return ""
    if after["spec"].get("updateStrategy") == UpdateStrategy.AT_NEXT_ATTEMPT:
        return "the running attempt continues; the next one has the changed pods"
    return "the running attempt commits and stops; the next one, on the same tier, has the changed pods"


def _pods(job: Object) -> object:
    """The fields that determine the pods on the job's current tier."""
    tier = (job.get("status") or {}).get("tier")
    overrides = next((entry.get("overrides") for entry in job["spec"]["tiers"] if entry["name"] == tier), None)
    return job["spec"]["workload"], job["spec"].get("source"), overrides


def _lines(thing: Object) -> list[str]:
    metadata = {name: thing["metadata"][name] for name in _COMPARED_METADATA if thing["metadata"].get(name)}
    fields = {**({"metadata": metadata} if metadata else {}), "spec": thing.get("spec")}
    return as_yaml(json.loads(json.dumps(fields, sort_keys=True))).splitlines()
