"""The users of a cluster, by the bearer tokens of their requests.

1. The API server says whose token it is (TokenReview) and what this user may do (`reviews`). No other header counts, so
   a client cannot name itself.
2. An answer is kept for `REVIEW_TTL`, by the hash of the token: a token that has ended counts until then. No token is
   kept, logged or used for anything else.
3. Each user may send `REQUESTS_PER_SECOND`. Tokens that were not accepted of late share a limit, so that a flood of
   invented ones reaches neither the API server nor the users whose tokens are known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from aiohttp import web

from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock, SystemClock
from spotladder.clusters.errors import Throttled
from spotladder.clusters.shared_reads import SharedReads
from spotladder.clusters.throttle import Throttle
from spotladder.core.model import Seconds
from spotladder.resources import APIResource
from spotladder.web.access import User
from spotladder.web.reviews import REVIEW_TTL, ReviewedUser, Reviews, answer, too_many
from spotladder.web.throttles import Throttles

TOKEN_REVIEWS = APIResource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)

REQUESTS_PER_SECOND, REQUESTS_AT_ONCE = 20.0, 200
"""Average and burst of one user's requests: `ClusterUsers.pages` pages open together with five requests each, and then
send one every `ClusterUsers.interval`."""

TOKENS_PER_SECOND, TOKENS_AT_ONCE = 10.0, 100
"""Average and burst of TokenReviews of unknown tokens."""

KNOWN_TTL = 3600.0
"""Seconds after the API server accepted a token in which its requests count against the limit of its user only."""

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
"""What differs between two tokens of one service account. No right depends on it."""


class ClusterUsers:
    """The users of the cluster of this client, at one host name."""

    pages = 25
    interval = 2.0
    none = "No jobs in a namespace in which you may list tieredjobs."

    def __init__(self, client: Client, host: str, clock: Clock | None = None) -> None:
        self.hosts = (host,)
        self._client = client
        clock = clock or SystemClock()
        self._ticks = clock.ticks
        self._reviewed = SharedReads[bytes, ReviewedUser | None](clock, lambda _user: REVIEW_TTL)
        self._reviews = Reviews(client, clock)
        self._unknown = Throttle(TOKENS_PER_SECOND, TOKENS_AT_ONCE, clock)
        self._known: dict[bytes, tuple[Seconds, str]] = {}
        self._requests = Throttles(REQUESTS_PER_SECOND, REQUESTS_AT_ONCE, clock)

    async def of(self, headers: Mapping[str, str]) -> User:
        token = _token(headers)
        key = sha256(token.encode()).digest()
        try:
            user = await self._reviewed.get(key, partial(self._review, token, key)) if token else None
        except Throttled:
            raise too_many() from None
        if user is None:
            text = "send a token that the cluster accepts, as `Authorization: Bearer TOKEN`; or log in again\n"
            raise web.HTTPUnauthorized(text=text, headers={"WWW-Authenticate": "Bearer"})
        return user

    def admit(self, user: User) -> None:
        if not self._requests.admits(user.name):
            raise too_many()

    async def _review(self, token: str, key: bytes) -> ReviewedUser | None:
        accepted, name = self._known.get(key, (None, ""))
        is_known = accepted is not None and self._ticks() - accepted < KNOWN_TTL
        if not (self._reviews.admits(name) if is_known else self._unknown.admits()):
            raise Throttled(429, "TooManyRequests", "too many tokens")
        status = await answer(self._client, TOKEN_REVIEWS, {"token": token})
        if not status.get("authenticated"):
            self._known.pop(key, None)
            return None
        user = self._user(status["user"])
        self._known = {each: known for each, known in self._known.items() if self._ticks() - known[0] < KNOWN_TTL}
        self._known[key] = self._ticks(), user.name
        return user

    def _user(self, given: Mapping[str, Any]) -> ReviewedUser:
        """The user of an answer. Two tokens of one service account are of the same user."""
        fields = {"user": "username", "uid": "uid", "groups": "groups", "extra": "extra"}
        who = {field: given[key] for field, key in fields.items() if key in given}
        if extra := who.get("extra"):
            who["extra"] = {key: value for key, value in extra.items() if key != CREDENTIAL_ID}
        return ReviewedUser(str(who["user"]), json.dumps(who, sort_keys=True), self._reviews)


def _token(headers: Mapping[str, str]) -> str:
    """The token of a request, from the user or from a proxy that logs users in; "" without one."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    token = token.strip() if scheme.lower() == "bearer" else headers.get("X-Forwarded-Access-Token", "")
    return token if token.isascii() else ""
