"""The users of a cluster, by the bearer tokens of their requests.

1. The API server says whose token it is (TokenReview) and what this user may do (SubjectAccessReview). No other header
   counts, so a client cannot name itself.
2. An answer is kept for `REVIEW_TTL`, by the hash of the token: a token that has ended, or a right that was taken away,
   counts until then. No token is kept, logged or used for anything else.
3. Each user may send `REQUESTS_PER_SECOND`. Tokens that were not reviewed yet share a limit, so that a flood of
   invented ones does not reach the API server.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

import structlog
from aiohttp import web

from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock, SystemClock
from spotladder.clusters.errors import Throttled
from spotladder.clusters.throttle import Throttle
from spotladder.errors import SpotladderError
from spotladder.places.recent import Recent
from spotladder.resources import APIResource
from spotladder.web.access import Right, User

_log = structlog.get_logger("spotladder")

TOKEN_REVIEWS = APIResource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
ACCESS_REVIEWS = APIResource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)

REVIEW_TTL = 60.0
"""Seconds for which an answer of the API server is used again."""

REQUESTS_PER_SECOND, REQUESTS_AT_ONCE = 20.0, 100
"""Average and burst of one user's requests. An open page sends up to four in a second while jobs change."""

TOKENS_PER_SECOND, TOKENS_AT_ONCE = 10.0, 100
"""Average and burst of TokenReviews."""


class ClusterUsers:
    """The users of the cluster of this client, at one host name."""

    pages = 25

    def __init__(self, client: Client, host: str, clock: Clock | None = None) -> None:
        self.hosts = (host.lower(),)
        self._client = client
        clock = clock or SystemClock()
        self._reviewed = Recent[bytes, _ClusterUser | None](REVIEW_TTL, clock.ticks)
        self._reviews = Throttle(TOKENS_PER_SECOND, TOKENS_AT_ONCE, clock)
        self._requests = defaultdict[str, Throttle](partial(Throttle, REQUESTS_PER_SECOND, REQUESTS_AT_ONCE, clock))

    async def of(self, headers: Mapping[str, str]) -> User:
        token = _token(headers)
        key = sha256(token.encode()).digest()
        try:
            user = await self._reviewed.get(key, partial(self._review, token)) if token else None
        except SpotladderError as error:
            self._reviewed.forget(key)
            if isinstance(error, Throttled):
                raise _too_many() from None
            raise
        if user is None:
            text = "send a token that the cluster accepts, as `Authorization: Bearer TOKEN`; or log in again\n"
            raise web.HTTPUnauthorized(text=text, headers={"WWW-Authenticate": "Bearer"})
        return user

    def admit(self, user: User) -> None:
        if not self._requests[user.name].admits():
            raise _too_many()

    async def _review(self, token: str) -> _ClusterUser | None:
        if not self._reviews.admits():
            raise Throttled(429, "TooManyRequests", "too many new tokens")
        status = await _answer(self._client, TOKEN_REVIEWS, {"token": token})
        return _ClusterUser(self._client, status["user"]) if status.get("authenticated") else None


class _ClusterUser:
    """A user by the answer to a TokenReview."""

    def __init__(self, client: Client, user: Mapping[str, Any]) -> None:
        self.name = str(user["username"])
        self._client = client
        fields = {"user": "username", "uid": "uid", "groups": "groups", "extra": "extra"}
        self._who = {field: user[key] for field, key in fields.items() if key in user}
        self._answers: dict[Right, asyncio.Task[bool]] = {}

    async def may(self, rights: Collection[Right]) -> Collection[Right]:
        asked = {right: self._asked(right) for right in rights}
        if waiting := [task for task in asked.values() if not task.done()]:
            await asyncio.wait(waiting)
        return {right for right, task in asked.items() if task.result()}

    def _asked(self, right: Right) -> asyncio.Task[bool]:
        """The answer, asked for once; again if that failed."""
        known = self._answers.get(right)
        if known is None or (known.done() and known.exception()):
            known = self._answers[right] = asyncio.create_task(self._ask(right))
        return known

    async def _ask(self, right: Right) -> bool:
        """Whether the user has the right in all namespaces, or in this one."""
        if right.namespace and await self.may([replace(right, namespace="")]):
            return True
        attributes = {
            "verb": right.verb,
            "group": right.kind.group,
            "resource": right.kind.plural,
            "subresource": right.subresource,
            "namespace": right.namespace,
        }
        status = await _answer(self._client, ACCESS_REVIEWS, {**self._who, "resourceAttributes": attributes})
        return bool(status.get("allowed"))


async def _answer(client: Client, kind: APIResource, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}, "spec": spec}
    try:
        status: Mapping[str, Any] = (await client.create(kind, body))["status"]
    except SpotladderError as error:
        _log.warning("the API server does not say what a user may see", problem=str(error))
        raise
    return status


def _token(headers: Mapping[str, str]) -> str:
    """The token of a request, from the user or from a proxy that logs users in; "" without one."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("X-Forwarded-Access-Token", "")


def _too_many() -> web.HTTPException:
    return web.HTTPTooManyRequests(text="too many requests: try again in a second\n", headers={"Retry-After": "1"})
