"""An API server in memory, and a `Client` of it, for tests without sockets.

It behaves like the real one in these points:
 1. Every write that changes something raises the one version; an object's `resourceVersion` is that of its last change.
 2. A patch with a `resourceVersion` or `uid` in its metadata, a replacement, and a deletion with a `uid` conflict when
    the object is another one.
 3. `status` is a subresource of every kind: a write to the object leaves it, a write to `status` leaves the rest.
 4. An object with finalizers, and a pod on a node that is given a grace, are marked as being deleted. They are removed
    with their last finalizer, or by a deletion without a grace period.
 5. A watch begins after the version that it names; a list is consistent.

It has no schemas, defaults, admission, field ownership or controllers, and no garbage collector.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from spotladder.clusters.client import PAGE, Client, Page, WatchEvent
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import ClusterUnreachable, Conflict, Invalid, NotFound
from spotladder.clusters.transport import Object
from spotladder.core.model import Seconds
from spotladder.resources import PODS, APIResource
from spotladder.timestamps import utc_timestamp

_Key = tuple[str, str]


class FakeApiServer:
    """The objects of one cluster. `down`: no call gets a response. `writes` has the verb and kind of each write."""

    def __init__(self, clock: Clock) -> None:
        self.down = False
        self.version = 0
        self.writes: list[tuple[str, str]] = []
        self._clock = clock
        self._objects: dict[APIResource, dict[_Key, Object]] = {}
        self._changes: list[tuple[int, APIResource, WatchEvent]] = []
        self._changed = asyncio.Condition()
        self._uids = itertools.count(1)

    def objects(self, kind: APIResource) -> dict[_Key, Object]:
        """The stored objects of the kind by namespace and name; do not modify them."""
        return self._objects.setdefault(kind, {})

    def find(self, kind: APIResource, name: str, namespace: str) -> Object:
        """The stored object. Raises NotFound."""
        found = self.objects(kind).get((namespace, name))
        if found is None:
            raise NotFound(404, "NotFound", f'{kind.plural} "{name}" not found', about=kind.plural)
        return found

    async def put(self, kind: APIResource, body: Object, *, verb: str) -> Object:
        """Create or replace the object. An equal object changes nothing."""
        metadata = body["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        before = self.objects(kind).get(key)
        if before == body:
            return before
        if before is None:
            created = utc_timestamp(self._clock.now())
            metadata.update(uid=f"uid-{next(self._uids)}", creationTimestamp=created, generation=1)
        elif before.get("spec") != body.get("spec"):
            metadata["generation"] = before["metadata"].get("generation", 1) + 1
        if metadata.get("deletionTimestamp") and not (metadata.get("finalizers") or kind == PODS):
            return await self.drop(kind, body)
        self.objects(kind)[key] = body
        return await self._record("ADDED" if before is None else "MODIFIED", kind, body, verb)

    async def drop(self, kind: APIResource, body: Object) -> Object:
        """Remove the object."""
        metadata = body["metadata"]
        self.objects(kind).pop((metadata.get("namespace", ""), metadata["name"]), None)
        return await self._record("DELETED", kind, body, "delete")

    async def mark_deleted(self, kind: APIResource, found: Object) -> Object:
        """Set `deletionTimestamp`, once."""
        if found["metadata"].get("deletionTimestamp"):
            return found
        body = deepcopy(found)
        body["metadata"]["deletionTimestamp"] = utc_timestamp(self._clock.now())
        return await self.put(kind, body, verb="delete")

    async def changes(self, kind: APIResource, after: int) -> AsyncIterator[WatchEvent]:
        """All changes of the kind after that version, without end."""
        seen = 0
        while True:
            while seen < len(self._changes):
                version, of, event = self._changes[seen]
                seen += 1
                if of == kind and version > after:
                    yield WatchEvent(event.kind, deepcopy(event.object))
            async with self._changed:
                if seen == len(self._changes):
                    await self._changed.wait()

    async def _record(self, what: str, kind: APIResource, body: Object, verb: str) -> Object:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.writes.append((verb, kind.plural))
        self._changes.append((self.version, kind, WatchEvent(what, deepcopy(body))))
        async with self._changed:
            self._changed.notify_all()
        return body


class FakeClient(Client):
    """A client of a `FakeApiServer`: every call that reads or writes objects, with the same errors."""

    def __init__(self, server: FakeApiServer, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.server = server

    async def get(self, kind: APIResource, name: str, namespace: str = "") -> Object:
        self._answer()
        return deepcopy(self.server.find(kind, name, namespace))

    async def metadata(self, kind: APIResource, name: str, namespace: str = "") -> Object:
        found = await self.get(kind, name, namespace)
        return {"metadata": found["metadata"]}

    async def pages(
        self,
        kind: APIResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = PAGE,
        metadata: bool = False,
    ) -> AsyncIterator[Page]:
        self._answer()
        wanted = _selected(namespace, labels, fields)
        found = [_part(deepcopy(body), metadata) for body in self.server.objects(kind).values() if wanted(body)]
        yield Page(found[:limit], str(self.server.version))
        for start in range(limit, len(found), limit):
            yield Page(found[start : start + limit], str(self.server.version))

    async def watch(
        self,
        kind: APIResource,
        namespace: str = "",
        *,
        version: str,
        labels: str = "",
        fields: str = "",
        seconds: Seconds = 300.0,
        metadata: bool = False,
    ) -> AsyncIterator[WatchEvent]:
        self._answer()
        wanted = _selected(namespace, labels, fields)
        async for event in self.server.changes(kind, int(version or 0)):
            if wanted(event.object):
                yield WatchEvent(event.kind, _part(event.object, metadata))

    async def exists(self, kind: APIResource) -> bool:
        self._answer()
        return True

    async def ping(self, seconds: Seconds) -> None:
        self._answer()

    async def version(self) -> str:
        self._answer()
        return "v1.35.0"

    async def apply(self, kind: APIResource, body: Object, *, force: bool = False, dry_run: bool = False) -> Object:
        self._answer(write=True)
        if dry_run:
            return deepcopy(body)
        key = body["metadata"].get("namespace", ""), body["metadata"]["name"]
        before = self.server.objects(kind).get(key, {})
        return deepcopy(await self.server.put(kind, _merged(before, body), verb="apply"))

    async def create(self, kind: APIResource, body: Object, *, dry_run: bool = False) -> Object:
        self._answer(write=True)
        key = body["metadata"].get("namespace", ""), body["metadata"]["name"]
        if key in self.server.objects(kind):
            raise Conflict(409, "AlreadyExists", f'{kind.plural} "{key[1]}" already exists')
        if dry_run:
            return deepcopy(body)
        return deepcopy(await self.server.put(kind, deepcopy(body), verb="create"))

    async def replace(self, kind: APIResource, body: Object) -> Object:
        self._answer(write=True)
        metadata = body["metadata"]
        found = self.server.find(kind, metadata["name"], metadata.get("namespace", ""))
        _check(found, metadata)
        kept = {**deepcopy(body), **({"status": found["status"]} if "status" in found else {})}
        return deepcopy(await self.server.put(kind, kept, verb="replace"))

    async def merge(
        self, kind: APIResource, name: str, namespace: str = "", *, body: Object, subresource: str = ""
    ) -> Object:
        self._answer(write=True)
        found = self.server.find(kind, name, namespace)
        _check(found, body.get("metadata") or {})
        part = {key: body[key] for key in body if (key == "status") == (subresource == "status")}
        given = {key: value for key, value in (part.pop("metadata", None) or {}).items() if key not in _IDENTITY}
        if subresource != "status":
            part["metadata"] = given
        return deepcopy(await self.server.put(kind, _merged(found, part), verb=f"patch {subresource}".strip()))

    async def patch(
        self, kind: APIResource, name: str, namespace: str, operations: Sequence[Mapping[str, Any]]
    ) -> Object:
        self._answer(write=True)
        body = deepcopy(self.server.find(kind, name, namespace))
        for operation in operations:
            _operate(body, operation)
        return deepcopy(await self.server.put(kind, body, verb="patch"))

    async def delete(
        self, kind: APIResource, name: str, namespace: str = "", *, uid: str = "", grace: int | None = None
    ) -> Object:
        self._answer(write=True)
        found = self.server.find(kind, name, namespace)
        _check(found, {"uid": uid} if uid else {})
        waits = kind == PODS and grace != 0 and (found.get("spec") or {}).get("nodeName")
        if found["metadata"].get("finalizers") or waits:
            return deepcopy(await self.server.mark_deleted(kind, found))
        return deepcopy(await self.server.drop(kind, deepcopy(found)))

    async def delete_all(self, kind: APIResource, namespace: str, *, labels: str) -> None:
        wanted = _selected(namespace, labels, "")
        for key, found in list(self.server.objects(kind).items()):
            if wanted(found):
                await self.delete(kind, key[1], key[0])

    async def log(
        self, pod: str, namespace: str, *, container: str, follow: bool = False, tail: int | None = None
    ) -> AsyncIterator[bytes]:
        self._answer()
        yield self._process(namespace, pod)

    async def read(
        self,
        pod: str,
        namespace: str,
        port: int,
        path: str,
        query: Mapping[str, str],
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncIterator[bytes]:
        self._answer()
        yield self._process(namespace, pod)

    async def ask(
        self,
        pod: str,
        namespace: str,
        port: int,
        path: str,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        most: int = 0,
    ) -> Any:
        self._answer()
        return self._process(namespace, pod)

    def _process(self, namespace: str, pod: str) -> bytes:
        """The output or response of a process in the pod. Raises NotFound: these pods have no processes."""
        raise NotFound(404, "NotFound", f"no process runs in pod {namespace}/{pod}", about=PODS.plural)

    def _answer(self, *, write: bool = False) -> None:
        """Raises ClusterUnreachable and, for a write, the errors of the guard."""
        if self.server.down:
            raise ClusterUnreachable("the API server is down")
        if write and self.guard:
            self.guard()


def _part(body: Object, metadata: bool) -> Object:
    return {"metadata": body["metadata"]} if metadata else body


_IDENTITY = frozenset({"resourceVersion", "uid", "name", "namespace"})


def _check(found: Object, metadata: Mapping[str, Any]) -> None:
    for name in ("uid", "resourceVersion"):
        if metadata.get(name) not in (None, "", found["metadata"].get(name)):
            message = f"the {name} is {found['metadata'].get(name)}, not {metadata[name]}"
            raise Conflict(409, "Conflict", message)


def _merged(before: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return deepcopy(patch)
    after: Object = deepcopy(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = _merged(after.get(name), value)
    return after


def _operate(body: Any, operation: Mapping[str, Any]) -> None:
    """One operation of a JSON patch (RFC 6902): `test`, `add` or `remove`. Raises Invalid."""
    *path, last = str(operation["path"]).lstrip("/").split("/")
    for name in path:
        body = body[int(name)] if isinstance(body, list) else body[name]
    if operation["op"] == "add":
        body[last] = deepcopy(operation["value"])
    elif operation["op"] == "remove":
        del body[int(last) if isinstance(body, list) else last]
    elif body.get(last) != operation["value"]:
        raise Invalid(422, "Invalid", f"testing value {operation['path']} failed")


def _selected(namespace: str, labels: str, fields: str) -> Callable[[Object], bool]:
    """Whether an object is in that namespace and matches both selectors, which support only `key=value`."""

    def fits(body: Object) -> bool:
        metadata = body["metadata"]
        if namespace and metadata.get("namespace", "") != namespace:
            return False
        has = metadata.get("labels") or {}
        if any(has.get(key) != value for key, value in _pairs(labels)):
            return False
        return all(_at(body, key) == value for key, value in _pairs(fields))

    return fits


def _pairs(selector: str) -> list[tuple[str, str]]:
    return [(key, value) for key, _, value in (part.partition("=") for part in selector.split(",") if part)]


def _at(body: Object, path: str) -> Any:
    if path == "source":  # of an Event
        return (body.get("source") or {}).get("component", "")
    value: Any = body
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return "" if value is None else value
