"""What a user may do, as the API server answers it (SubjectAccessReview).

1. A right in all namespaces is asked for first: who has it costs one review.
2. A yes is kept for `REVIEW_TTL`, a no for `REFUSAL_TTL`: most reviews of a page are of objects of other users.
3. Each account has a budget, and few reviews are under way at once. What is beyond that is refused, and not queued: the
   pages that wait in the queue of one user would be those of all.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import structlog
from aiohttp import web

from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import Throttled
from spotladder.clusters.shared_reads import SharedReads
from spotladder.errors import SpotladderError
from spotladder.resources import APIResource
from spotladder.web.access import Right
from spotladder.web.throttles import Throttles

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
        self._client = client
        self._budgets = Throttles(REVIEWS_PER_SECOND, REVIEWS_AT_ONCE, clock)
        self._answers = SharedReads[tuple[ReviewedUser, Right], bool](
            clock, lambda allowed: REVIEW_TTL if allowed else REFUSAL_TTL
        )
        self._under_way = 0

    def admits(self, name: str) -> bool:
        """Whether the user of this name may cause one more review. The service accounts of a namespace have one budget,
        since a user who may create one may create many."""
        account = name.rpartition(":")[0] if name.startswith(SERVICE_ACCOUNT) else name
        return self._under_way < REVIEWS_UNDER_WAY and self._budgets.admits(account)

    async def allowed(self, user: ReviewedUser, rights: Iterable[Right]) -> set[Right]:
        """The rights among these that the user has. Raises web.HTTPException if the user may not ask now."""
        tasks = {right: self._answers.begun((user, right), partial(self._ask, user, right)) for right in rights}
        if waiting := [task for task in tasks.values() if not task.done()]:
            await asyncio.wait(waiting)
        try:
            return {right for right, task in tasks.items() if task.result()}
        except Throttled:
            raise too_many() from None

    async def _ask(self, user: ReviewedUser, right: Right) -> bool:
        if not self.admits(user.name):
            raise Throttled(429, "TooManyRequests", "too many reviews")
        attributes = {
            "verb": right.verb,
            "group": right.kind.group,
            "resource": right.kind.plural,
            "subresource": right.subresource,
            "namespace": right.namespace,
        }
        self._under_way += 1
        try:
            spec = {**json.loads(user.who), "resourceAttributes": attributes}
            return bool((await answer(self._client, ACCESS_REVIEWS, spec)).get("allowed"))
        finally:
            self._under_way -= 1


@dataclass(frozen=True, slots=True)
class ReviewedUser:
    """A user, with the JSON that names it in a review. The same user of another token is equal."""

    name: str
    who: str
    reviews: Reviews = field(compare=False)

    async def may(self, rights: Collection[Right]) -> Collection[Right]:
        everywhere = await self.reviews.allowed(self, {replace(right, namespace="") for right in rights})
        found = {right for right in rights if replace(right, namespace="") in everywhere}
        others = [right for right in rights if right.namespace and right not in found]
        return found | await self.reviews.allowed(self, others)


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
