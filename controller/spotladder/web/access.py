"""Who asks for a page, and what the pages show to this user.

1. All pages and the stream of changes show the `View` of the user who asks, and nothing else.
2. A right is one that kubectl needs for the same: jobs need `list tieredjobs` in their namespace, tiers `list
   capacitytiers`, and output `get pods/log` in the namespace of the job.
3. The page of this machine is for the user of the kubeconfig, who sees all that it may read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from spotladder.display.report.facts import RunFacts
from spotladder.errors import EnvironmentFailure
from spotladder.places.fleet import ClusterSeen, names_of_clusters
from spotladder.places.place import Object, Place, Printed
from spotladder.resources import CAPACITYTIERS, PODS, TIEREDJOBS, APIResource
from spotladder.web.pages import NO_JOBS
from spotladder.web.rows import JobRow


@dataclass(frozen=True, slots=True)
class Right:
    """A verb on a kind in a namespace, or in all (""), as RBAC names it."""

    verb: str
    kind: APIResource
    namespace: str = ""
    subresource: str = ""


LIST_TIERS = Right("list", CAPACITYTIERS)


MAX_PAGES = 250
"""Maximum number of open pages of all users that get changes."""


class User(Protocol):
    """Who asks. `name` identifies the user."""

    @property
    def name(self) -> str: ...

    async def may(self, rights: Collection[Right]) -> Collection[Right]:
        """The rights among these that the user has. Raises SpotladderError if the API server does not answer, and
        aiohttp.web.HTTPException if the user has asked for too many."""


class Users(Protocol):
    """The users of a page."""

    @property
    def hosts(self) -> Sequence[str]:
        """The host names at which users reach the page."""

    @property
    def pages(self) -> int:
        """Maximum number of open pages of one user that get changes."""

    @property
    def interval(self) -> float:
        """Minimum seconds between two messages to the open pages."""

    @property
    def none(self) -> str:
        """What an empty list of jobs says."""

    async def of(self, headers: Mapping[str, str]) -> User:
        """The user who sends a request with these headers. Raises aiohttp.web.HTTPException, SpotladderError."""

    def admit(self, user: User) -> None:
        """Count a request of this user. Raises aiohttp.web.HTTPException if it is one too many."""


class OnThisMachine:
    """The one user of the page of this machine."""

    name = ""
    hosts = ("localhost", "127.0.0.1", "::1")
    pages = MAX_PAGES
    interval = 0.25
    none = NO_JOBS

    async def of(self, _headers: Mapping[str, str]) -> User:
        return self

    def admit(self, user: User) -> None:
        """Every request is admitted."""

    async def may(self, rights: Collection[Right]) -> Collection[Right]:
        return rights


@dataclass(frozen=True, slots=True)
class View:
    """What a user sees: the jobs of these namespaces, and all tiers or none."""

    user: User
    namespaces: frozenset[str]
    tiers: bool

    @classmethod
    async def of(cls, user: User, namespaces: Iterable[str]) -> View:
        """The view of this user, of these namespaces. Raises what `User.may` raises."""
        jobs = {Right("list", TIEREDJOBS, each): each for each in namespaces if each}
        allowed = await user.may({LIST_TIERS, *jobs})
        return cls(user, frozenset(jobs[each] for each in allowed if each in jobs), LIST_TIERS in allowed)

    def shows(self, namespace: str) -> bool:
        """Whether this namespace, or the objects of the cluster (""), are part of it."""
        return namespace in self.namespaces if namespace else self.tiers

    def places(self, places: Iterable[Place]) -> list[Seen]:
        """The places as the user sees them."""
        return [Seen(place, self) for place in places]

    def rows(self, rows: Iterable[JobRow]) -> list[JobRow]:
        """The rows of the jobs that the user sees."""
        return [row for row in rows if self.shows(row.namespace)]


class Seen:
    """A place as one user sees it."""

    def __init__(self, place: Place, view: View) -> None:
        self._place, self._view = place, view
        self.name, self.title, self.problem = place.name, place.title, place.problem

    def jobs(self) -> Sequence[Object]:
        return [job for job in self._place.jobs() if self._view.shows(job["metadata"]["namespace"])]

    def tiers(self) -> Sequence[Object]:
        return self._place.tiers() if self._view.tiers else ()

    async def facts(self, namespace: str, name: str) -> RunFacts | None:
        return await self._place.facts(namespace, name)

    async def printed(self, namespace: str, name: str, attempt: int) -> Sequence[Printed]:
        if not await self._view.user.may([Right("get", PODS, namespace, "log")]):
            raise EnvironmentFailure(f"you may not read logs of namespace {namespace}: it needs the right get pods/log")
        return await self._place.printed(namespace, name, attempt)

    async def clusters(self) -> Sequence[ClusterSeen]:
        named = names_of_clusters(self.tiers(), self.jobs())
        return [each for each in await self._place.clusters() if each.home or each.name in named]
