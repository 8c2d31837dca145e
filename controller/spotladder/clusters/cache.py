"""The objects of one kind in one cluster as trimmed records, kept current by list and watch.

1. A list is consistent: at least as new as every write that was acknowledged before it began. So a controller that
   lists after its election observes everything that its predecessor observed.
2. Between lists, only a watch and `put`, with the response to the controller's own write, change the cache, so that
   the controller reads its own writes. A version older than the cached one is dropped; resourceVersions of one kind
   are ordered numbers (guaranteed since Kubernetes 1.35, and by etcd always).
3. After a lost connection the watch resumes from the last version; 410 triggers a relist.
4. Caches of different kinds are not equally new: `is_gone` distinguishes a deleted object from an object that the
   cache has not received yet.
5. A kind that the server does not know, or that may not be read, is reported as `problem`, and the list is
   retried. So is an unexpected error.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from math import inf
from typing import Any, Generic, Protocol, TypeVar

import structlog

from spotladder.backoff import delay
from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import ClusterUnreachable, Expired, NotFound, Throttled
from spotladder.clusters.transport import Object
from spotladder.core.model import Seconds
from spotladder.errors import SpotladderError, described
from spotladder.resources import APIResource

WATCH: Seconds = 300.0
"""Minimum duration of one watch; the maximum is twice as long."""

INTERRUPTION: Seconds = 5.0
"""Failed attempts over at least this time count as an interruption; a watch that resumes at once does not."""

OPTIONAL_RETRY_INTERVAL: Seconds = 60.0
"""Interval between two checks for a kind that is optional."""

FIRST_PAUSE: Seconds = 0.2
LONGEST_PAUSE: Seconds = 15.0

_log = structlog.get_logger("spotladder")

KEPT_KEYS = 1024
"""Number of deleted objects that are known to be gone, whatever the versions of other kinds are."""


class CachedRecord(Protocol):
    """A record that a cache can hold. Equality ignores the version."""

    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


R = TypeVar("R", bound=CachedRecord)
Key = tuple[str, str]
"""Namespace and name."""

Changed = Callable[[R | None, R | None], None]
"""Called with a record before and after a change; not for updates without a difference."""


class Cache(Generic[R]):
    """Records of `kind`, of one namespace or of all (""). `run` keeps it current until it is cancelled.

    `group` gives the key that records are looked up by in `of`. `problem` says why the cache cannot be filled, "" when
    it can; `silent` that the server gave no answer to the last try. `heard_at` is when the server was last known to
    answer, in ticks, and `restored_at` when it first did after an interruption. An `optional` kind is listed only where
    the server knows it. `metadata`: only the metadata of the objects is requested.
    """

    def __init__(
        self,
        client: Client,
        kind: APIResource,
        trim: Callable[[Object], R],
        *,
        clock: Clock,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        group: Callable[[R], object] = lambda _record: None,
        changed: Changed[R] = lambda _before, _after: None,
        optional: bool = False,
        metadata: bool = False,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.problem = ""
        self.absent = False
        self.silent = False
        self.heard_at = float("-inf")
        self.restored_at: Seconds | None = None
        self.lists = 0
        self._client = client
        self._trim = trim
        self._clock = clock
        self._labels = labels
        self._fields = fields
        self._group = group
        self._changed = changed
        self._optional = optional
        self._metadata = metadata
        self._jitter = jitter
        self._records: dict[Key, R] = {}
        self._groups: dict[object, dict[Key, R]] = {}
        self._sync_known = asyncio.Event()
        self._version = ""
        self._heard_now = False
        self._interrupted = False
        self._silent_since = self._silent_until = inf
        self._left: dict[Key, None] = {}

    # --- queries ----------------------------------------------------------------------------------------------------

    @property
    def has_synced(self) -> bool:
        """Whether all objects have been listed once."""
        return self.lists > 0

    async def wait_for_sync(self) -> None:
        """Return when all objects are listed, or when `problem` is set."""
        await self._sync_known.wait()

    def get(self, name: str, namespace: str = "") -> R | None:
        """The record with this name."""
        return self._records.get((namespace, name))

    def is_gone(self, name: str, namespace: str, *, at: str) -> bool:
        """Whether the object is known to be gone, for a caller that observed it at version `at` of any kind.

        A missing object may also be so new that this cache has not received it yet.
        """
        key = namespace, name
        return key not in self._records and (key in self._left or _number(self._version) >= _number(at))

    def of(self, group: object) -> list[R]:
        """The records of that group."""
        return list(self._groups.get(group, {}).values())

    def all(self) -> Iterable[R]:
        """All records."""
        return self._records.values()

    def __len__(self) -> int:
        return len(self._records)

    # --- updates ----------------------------------------------------------------------------------------------------

    def put(self, found: Object) -> None:
        """Add the response to a write of the controller; the watch delivers the same object later or,
        seldom, before. An object that is missing at a later version is gone."""
        metadata = found["metadata"]
        if _key(metadata) in self._records or _number(metadata["resourceVersion"]) > _number(self._version):
            self._take(found)

    def require_relist(self) -> None:
        """The records may be outdated: list again before `wait_for_sync` returns. Not while `run` is active."""
        self._version = ""
        self._interrupted = self.has_synced
        self._sync_known.clear()

    # --- list and watch ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """List, then watch, until cancelled."""
        failures = 0
        while True:
            self._heard_now = False
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except Expired:
                self._version = ""
            except SpotladderError as error:
                self._failed(error)
                self._sync_known.set()
            except Exception as error:  # noqa: BLE001 – a cache that has stopped must not look healthy
                _log.error("a cache has failed with an unexpected error", kind=self.kind.plural, exc_info=error)
                self._version, self.problem = "", described(error)
                self._sync_known.set()
            if self._heard_now and not self.problem:
                failures = 0
                continue
            failures += 1
            if self._optional and self.problem:
                await self._clock.sleep(OPTIONAL_RETRY_INTERVAL)
                continue
            await self._clock.sleep(delay(FIRST_PAUSE, LONGEST_PAUSE, failures, self._jitter()))

    def _failed(self, error: SpotladderError) -> None:
        self.silent = isinstance(error, ClusterUnreachable | Throttled)
        if self.silent:
            self._silent_until = self._clock.ticks()
            self._silent_since = min(self._silent_since, self._silent_until)
        if self.silent and self.has_synced:
            return  # The cached objects stay valid; the watch resumes from them.
        self._version, self.problem = "", str(error)
        self.absent = isinstance(error, NotFound)
        if self.absent:
            self._replace({}, self._records)

    async def _list(self) -> None:
        before, found = dict(self._records), dict[Key, R]()
        version = ""
        if self._optional and not await self._client.exists(self.kind):
            raise NotFound(404, "NotFound", f"the server does not know {self.kind.plural}.{self.kind.group}")
        async for page in self._client.pages(
            self.kind, self.namespace, labels=self._labels, fields=self._fields, metadata=self._metadata
        ):
            version = page.version
            for thing in page.items:
                found[_key(thing["metadata"])] = self._trim(thing)
        if not version:
            raise ClusterUnreachable(f"list {self.kind.plural}: the response is not a list; a proxy may have sent it")
        self._replace(found, before, _number(version))
        self._version = version
        self.lists += 1
        self._heard()
        self._sync_known.set()

    async def _watch(self) -> None:
        """Watch until the server ends the watch. `_version` is where the next watch resumes."""
        lasting = WATCH * (1 + self._jitter())
        stream = self._client.watch(
            self.kind,
            self.namespace,
            version=self._version,
            labels=self._labels,
            fields=self._fields,
            seconds=lasting,
            metadata=self._metadata,
        )
        async for event in stream:
            self._heard()
            if event.kind == "DELETED":
                self._remove(event.object)
            elif event.kind != "BOOKMARK":
                self._take(event.object)
            self._version = event.object["metadata"]["resourceVersion"]

    def _heard(self) -> None:
        self.heard_at = self._clock.ticks()
        if self._interrupted or self._silent_until - self._silent_since >= INTERRUPTION:
            self.restored_at = self.heard_at
        self._interrupted, self._silent_since, self._silent_until = False, inf, inf
        self.problem, self.absent, self.silent, self._heard_now = "", False, False, True

    # --- the records ------------------------------------------------------------------------------------------------

    def _replace(self, found: Mapping[Key, R], before: Mapping[Key, R], version: int = 0) -> None:
        """Replace the records with a list at this version. `before` are the records when the list began: the list is
        newer, although their versions may be higher in a cluster that was created again. Those that the controller has
        written since are kept if they are newer than the list."""
        for key, held in list(self._records.items()):
            written = before.get(key) is not held and _number(held.resource_version) > version
            older = key not in found or _number(found[key].resource_version) < _number(held.resource_version)
            if older and not written:
                self._drop(key, held)
        for key, record in found.items():
            self._keep(key, record)

    def _take(self, thing: Object) -> None:
        metadata = thing["metadata"]
        key = _key(metadata)
        held = self._records.get(key)
        # Otherwise the controller's own write is delivered again.
        if held is None or held.resource_version != metadata.get("resourceVersion"):
            self._keep(key, self._trim(thing))

    def _keep(self, key: Key, record: R) -> None:
        held = self._records.get(key)
        if held is not None and _number(record.resource_version) < _number(held.resource_version):
            return
        if held is not None and held.uid != record.uid:  # It was deleted and created again while no watch ran.
            self._drop(key, held)
            held = None
        self._records[key] = record
        self._left.pop(key, None)
        if held is not None:
            self._leave_group(key, held)
        self._groups.setdefault(self._group(record), {})[key] = record
        if held != record:
            self._changed(held, record)

    def _remove(self, thing: Object) -> None:
        metadata = thing["metadata"]
        key = _key(metadata)
        held = self._records.get(key)
        if held is not None and _number(metadata["resourceVersion"]) >= _number(held.resource_version):
            self._drop(key, held)

    def _drop(self, key: Key, held: R) -> None:
        del self._records[key]
        self._left[key] = None
        if len(self._left) > KEPT_KEYS:
            del self._left[next(iter(self._left))]
        self._leave_group(key, held)
        self._changed(held, None)

    def _leave_group(self, key: Key, held: R) -> None:
        group = self._group(held)
        members = self._groups.get(group, {})
        members.pop(key, None)
        if not members:
            self._groups.pop(group, None)


def _key(metadata: Mapping[str, Any]) -> Key:
    return metadata.get("namespace", ""), metadata["name"]


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0


class Scoped(Generic[R]):
    """The caches of one kind for several namespaces, or the one for all, as one cache."""

    def __init__(self, caches: Iterable[Cache[R]]) -> None:
        self._by_namespace = {cache.namespace: cache for cache in caches}

    @property
    def caches(self) -> list[Cache[R]]:
        return list(self._by_namespace.values())

    def within(self, namespace: str) -> Cache[R] | None:
        """The cache for this namespace; None if the namespace is not watched."""
        return self._by_namespace.get(namespace, self._by_namespace.get(""))

    def get(self, name: str, namespace: str) -> R | None:
        """The record with this name."""
        cache = self.within(namespace)
        return cache.get(name, namespace) if cache is not None else None

    def of(self, group: object) -> list[R]:
        """The records of that group, in all namespaces."""
        return [record for cache in self._by_namespace.values() for record in cache.of(group)]

    def __len__(self) -> int:
        return sum(map(len, self._by_namespace.values()))

    def all(self) -> Iterable[R]:
        """All records."""
        return chain.from_iterable(cache.all() for cache in self._by_namespace.values())

    def put(self, found: Object) -> None:
        """Add the response to a write of the controller."""
        cache = self.within(found["metadata"].get("namespace", ""))
        if cache is not None:
            cache.put(found)
