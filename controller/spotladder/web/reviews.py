"""What a user may do, as the API server answers it (SubjectAccessReview).

1. A right in all namespaces is asked for first: who has it costs one review.
2. A yes is kept for `REVIEW_TTL`, a no for `REFUSAL_TTL`: most reviews of a page are of objects of other users.
3. Each account has a budget, and few reviews are under way at once. What is beyond that is refused, and not queued: the
   pages that wait in the queue of one user would be those of all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import structlog
from aiohttp import web

from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.clusters.throttle import Throttles
from spotladder.core.model import Seconds
from spotladder.errors import SpotladderError
from spotladder.resources import APIResource
from spotladder.web.access import Right

_log = structlog.get_logger("spotladder")

ACCESS_REVIEWS = APIResource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)

REVIEW_TTL, REFUSAL_TTL = 60.0, 300.0
"""Seconds for which a positive and a negative answer of the API server are reused."""

REVIEWS_PER_SECOND, REVIEWS_AT_ONCE = 20.0, 400
"""Average and burst of the reviews of one account."""

REVIEWS_UNDER_WAY = 500
"""Number of reviews of all users that wait for an answer: what the page may ask in five seconds."""

SERVICE_ACCOUNT = "system:serviceaccount:"


class Reviews:
    """The reviews of all users."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.ticks = clock.ticks
        self._client = client
        self._budgets = Throttles(REVIEWS_PER_SECOND, REVIEWS_AT_ONCE, clock)
        self._under_way: set[asyncio.Task[bool]] = set()

    def admits(self, name: str) -> bool:
        """Whether the user of this name may cause one more review. The service accounts of a namespace have one budget,
        since a user who may create one may create many."""
        account = name.rpartition(":")[0] if name.startswith(SERVICE_ACCOUNT) else name
        return len(self._under_way) < REVIEWS_UNDER_WAY and self._budgets.admits(account)

    def start(self, who: Mapping[str, Any], right: Right) -> asyncio.Task[bool]:
        """Ask whether this user has the right."""
        task = asyncio.create_task(self._ask(who, right))
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[bool]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # Marks it as read: no request may wait for this review any more.

    async def _ask(self, who: Mapping[str, Any], right: Right) -> bool:
        attributes = {
            "verb": right.verb,
            "group": right.kind.group,
            "resource": right.kind.plural,
            "subresource": right.subresource,
            "namespace": right.namespace,
        }
        status = await answer(self._client, ACCESS_REVIEWS, {**who, "resourceAttributes": attributes})
        return bool(status.get("allowed"))


class ReviewedUser:
    """A user, as `who` names it in a review."""

    def __init__(self, reviews: Reviews, who: Mapping[str, Any]) -> None:
        self.name = str(who["user"])
        self._who = who
        self._reviews = reviews
        self._answers: dict[Right, tuple[Seconds, asyncio.Task[bool]]] = {}

    async def may(self, rights: Collection[Right]) -> Collection[Right]:
        everywhere = await self._have({replace(right, namespace="") for right in rights})
        found = {right for right in rights if replace(right, namespace="") in everywhere}
        return found | await self._have([right for right in rights if right.namespace and right not in found])

    async def _have(self, rights: Collection[Right]) -> set[Right]:
        asked = {right: self._asked(right) for right in rights}
        if None in asked.values():
            raise too_many()
        tasks = {right: task for right, task in asked.items() if task}
        if waiting := [task for task in tasks.values() if not task.done()]:
            await asyncio.wait(waiting)
        return {right for right, task in tasks.items() if task.result()}

    def _asked(self, right: Right) -> asyncio.Task[bool] | None:
        """The answer or the review under way; None if the user may not ask now."""
        known = self._answers.get(right)
        if known is None or not self._is_current(*known):
            if not self._reviews.admits(self.name):
                return None
            known = self._answers[right] = self._reviews.ticks(), self._reviews.start(self._who, right)
        return known[1]

    def _is_current(self, asked: Seconds, task: asyncio.Task[bool]) -> bool:
        if not task.done():
            return True
        if task.cancelled() or task.exception():
            return False
        return self._reviews.ticks() - asked < (REVIEW_TTL if task.result() else REFUSAL_TTL)

    def forget_old(self) -> bool:
        """Drop the answers that have expired. Returns whether no answer is left."""
        self._answers = {right: known for right, known in self._answers.items() if self._is_current(*known)}
        return not self._answers


async def answer(client: Client, kind: APIResource, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of a review. Raises SpotladderError."""
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}, "spec": spec}
    try:
        status: Mapping[str, Any] = (await client.create(kind, body))["status"]
    except SpotladderError as error:
        _log.warning("the API server does not say what a user may see", problem=str(error))
        raise
    return status


def too_many() -> web.HTTPException:
    """The answer to a user who asks for more than the limits allow."""
    return web.HTTPTooManyRequests(text="too many requests: try again in a second\n", headers={"Retry-After": "1"})
