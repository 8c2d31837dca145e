"""One object of a file to the cluster, by server-side apply, and what that changed."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from io import StringIO

from spotladder.cli.cluster.cluster import MANAGER, Cluster, Object, Refused
from spotladder.clusters.errors import Conflict, NotFound
from spotladder.core.model import UpdateStrategy
from spotladder.operator.records import CAPACITYTIERS, TIEREDJOBS

TRIES = 5
"""Attempts to write an object that a controller writes at the same time."""

_CONTEXT = 1  # unchanged lines around each change
_SHOWN = ("labels", "annotations")


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of it: the object as it is now, `created`, `configured` or `unchanged`, the lines that changed, and
    what the change does to a running attempt ("" when nothing)."""

    thing: Object
    word: str
    changes: tuple[str, ...] = ()
    effect: str = ""


async def send(cluster: Cluster, body: Object, *, update: bool) -> Sent:
    """Apply the object as the one manager of its fields. Raises Refused for a job that exists, unless `update`."""
    from spotladder.cli.cluster.preflight import exists

    kind = TIEREDJOBS if body["kind"] == "TieredJob" else CAPACITYTIERS
    name, namespace = body["metadata"]["name"], ""
    if kind.namespaced:
        namespace = body["metadata"].setdefault("namespace", cluster.namespace)
        if not update:
            try:
                # Without force: a job that another manager has created since the check is not overwritten.
                return Sent(await cluster.client.apply(kind, body), "created")
            except Conflict:
                raise Refused(exists(name, namespace)) from None
    before = await _owned(cluster, body)
    after = await cluster.client.apply(kind, body, force=True)
    if before is None:
        return Sent(after, "created")
    changes = difference(before, after)
    return Sent(after, "configured" if changes else "unchanged", changes, effect(before, after))


async def _owned(cluster: Cluster, body: Object) -> Object | None:
    """The object as it is, its fields applied by us also where an older version created them; None: there is none."""
    from spotladder.cli.cluster.ownership import migrated

    kind = TIEREDJOBS if body["kind"] == "TieredJob" else CAPACITYTIERS
    name, namespace = body["metadata"]["name"], body["metadata"].get("namespace", "") if kind.namespaced else ""
    for attempt in range(1, TRIES + 1):
        try:
            thing = await cluster.client.get(kind, name, namespace)
        except NotFound:
            return None
        metadata = thing["metadata"]
        entries = migrated(metadata.get("managedFields") or [], MANAGER)
        if entries is None:
            return thing
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "managedFields": entries}}
        try:
            await cluster.client.merge(kind, name, namespace, body=patch)
        except Conflict:
            if attempt == TRIES:
                raise
        else:
            return thing
    raise AssertionError("the last try returns or raises")


def difference(before: Object, after: Object) -> tuple[str, ...]:
    """What changed, in lines of a unified diff of the objects' YAML; empty when nothing did."""
    lines = difflib.unified_diff(_lines(before), _lines(after), n=_CONTEXT, lineterm="")
    return tuple(line for line in lines if not line.startswith(("---", "+++", "@@")))


def effect(before: Object, after: Object) -> str:
    """What the change does to the attempt that runs; "" when there is none, or its pods do not change."""
    phase = (before.get("status") or {}).get("phase")
    if before["kind"] != TIEREDJOBS.kind or phase != "Running" or _pods(before) == _pods(after):
        return ""
    if after["spec"].get("updateStrategy") == UpdateStrategy.AT_NEXT_ATTEMPT:
        return "the running attempt goes on; the next one has the changed pods"
    return "the running attempt commits and stops; the next one, on the same tier, has the changed pods"


def _pods(job: Object) -> object:
    """What the pods of the job's present tier are made from."""
    tier = (job.get("status") or {}).get("tier")
    overrides = next((entry.get("overrides") for entry in job["spec"]["tiers"] if entry["name"] == tier), None)
    return job["spec"]["workload"], overrides


def _lines(thing: Object) -> list[str]:
    from ruamel.yaml import YAML

    metadata = {name: thing["metadata"][name] for name in _SHOWN if thing["metadata"].get(name)}
    shown = {**({"metadata": metadata} if metadata else {}), "spec": thing.get("spec")}
    writer, text = YAML(typ="safe", pure=True), StringIO()
    writer.default_flow_style = False
    writer.dump(shown, text)
    return text.getvalue().splitlines()
