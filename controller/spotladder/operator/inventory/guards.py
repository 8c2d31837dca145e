"""The guards of attempts that exist in one cluster, and the Secrets with the tokens of its Ray clusters.

Only their metadata is listed and watched: the content of a Secret is never sent. Where the controller may not do this,
it is unknown whether a guard exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from spotladder.clusters.cache import Cache, Key, Scoped
from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.clusters.transport import Object
from spotladder.core.model import Seconds
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, SECRETS, APIResource
from spotladder.workloads.guards import GuardRecord, digest_of
from spotladder.workloads.rayjob.authentication import TOKEN
from spotladder.workloads.records import job_of

PAUSE: Seconds = 10.0
"""Seconds after which a guard that was created again may be created once more: a policy engine that removes it must not
cost a write for each of its deletions."""


class Guards:
    """Calls `wake` with the job whose guard was deleted, and `token_gone` with the namespace whose token was
    deleted."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        scopes: Iterable[str],
        labels: str,
        wake: Callable[[Key], None],
        token_gone: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._created_again: dict[tuple[APIResource, str, str], Seconds] = {}
        self._wake = wake
        self._token_gone = token_gone
        namespaces = tuple(scopes)

        def scoped(kind: APIResource, **more: Any) -> Scoped[GuardRecord]:
            return Scoped(
                Cache(
                    client, kind, GuardRecord.of, clock=clock, namespace=scope, metadata=True, optional=True, **more
                )
                for scope in namespaces
            )  # fmt: skip

        guards: dict[str, Any] = {"labels": labels, "changed": self._guard_changed}
        self._kinds: dict[APIResource, Scoped[GuardRecord]] = {
            DISRUPTION_BUDGETS: scoped(DISRUPTION_BUDGETS, **guards),
            NETWORK_POLICIES: scoped(NETWORK_POLICIES, **guards),
            SECRETS: scoped(SECRETS, fields=f"metadata.name={TOKEN}", changed=self._token_changed),
        }

    @property
    def caches(self) -> list[Cache[GuardRecord]]:
        """All caches, to be run."""
        return [cache for scoped in self._kinds.values() for cache in scoped.caches]

    def exists(self, kind: APIResource, name: str, namespace: str) -> bool | None:
        """Whether the object exists; None if that is unknown."""
        cache = self._readable(kind, namespace)
        return None if cache is None else cache.get(name, namespace) is not None

    def may_create_again(self, kind: APIResource, name: str, namespace: str) -> bool:
        """Whether enough time has passed since the controller last created the deleted object again."""
        at = self._created_again.get((kind, name, namespace))
        return at is None or self._clock.ticks() >= at + PAUSE

    def created_again(self, kind: APIResource, name: str, namespace: str) -> None:
        now = self._clock.ticks()
        self._created_again = {one: at for one, at in self._created_again.items() if now < at + PAUSE}
        self._created_again[kind, name, namespace] = now

    def is_current(self, kind: APIResource, body: Object) -> bool:
        """Whether the guard is known to exist with the content of `body`."""
        name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
        cache = self._readable(kind, namespace)
        guard = None if cache is None else cache.get(name, namespace)
        return guard is not None and not guard.deleting and guard.digest == digest_of(body)

    def written(self, kind: APIResource, answer: Object) -> None:
        """Add the API server's response to a write of the controller to the cache."""
        if kind in self._kinds:
            self._kinds[kind].put(answer)

    def _readable(self, kind: APIResource, namespace: str) -> Cache[GuardRecord] | None:
        """The objects of this kind in the namespace; None if they are unknown."""
        cache = self._kinds[kind].within(namespace)
        return None if cache is None or not cache.has_synced or cache.problem else cache

    def _guard_changed(self, before: GuardRecord | None, after: GuardRecord | None) -> None:
        if before is not None and after is None:
            self._wake(job_of(before))

    def _token_changed(self, before: GuardRecord | None, after: GuardRecord | None) -> None:
        if before is not None and after is None:
            self._token_gone(before.namespace)
