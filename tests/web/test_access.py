"""A page for many users: each sees what the cluster lets this user see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import Mock

import pytest
from aiohttp import ClientResponse, ClientSession, ClientTimeout

from spotladder.clusters.client import Client
from spotladder.clusters.errors import ClusterUnreachable
from spotladder.clusters.transport import Object
from spotladder.places.fleet import lost
from spotladder.places.place import Printed
from spotladder.resources import APIResource
from spotladder.web import cluster_users, reviews, server
from spotladder.web.cluster_users import TOKEN_REVIEWS, ClusterUsers
from spotladder.web.pages import jobs_page
from spotladder.web.reviews import REFUSAL_TTL, REVIEW_TTL
from spotladder.web.server import serving
from tests.clusters.stepped_clock import SteppedClock
from tests.web.builders import Shelf, job, seen_clusters, tier

HOST = "spotladder.example"
JOBS, LOGS, TIERS = ("list", "tieredjobs"), ("get", "pods/log"), ("list", "capacitytiers")


class Reviewing(Client):
    """An API server with the users of these tokens and their rights, each (user, verb, resource, namespace)."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = {f"token-of-{name}": name for name in ("ada", "ben", "admin")}
        self.rights = {("ada", *JOBS, "team-a"), ("ben", *JOBS, "team-b")}
        self.rights |= {("admin", *right, "") for right in (JOBS, LOGS, TIERS)}
        self.down = False
        self.answers = asyncio.Event()
        self.answers.set()
        self.asked: list[Object] = []

    async def create(self, kind: APIResource, body: Object, *, dry_run: bool = False) -> Object:
        if self.down:
            raise ClusterUnreachable("connection refused")
        spec = body["spec"]
        self.asked.append(spec)
        if kind == TOKEN_REVIEWS:
            name = self.tokens.get(spec["token"])
            user = {"username": name, "uid": "1", "groups": ["people"], "extra": {"scope": ["all"]}}
            return {"status": {"authenticated": True, "user": user} if name else {}}
        await self.answers.wait()
        assert (spec["uid"], spec["groups"], spec["extra"]) == ("1", ["people"], {"scope": ["all"]})
        asked = spec["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked["subresource"])))
        assert asked["group"] == ("" if resource == "pods/log" else "spotladder.io")
        right = (spec["user"], asked["verb"], resource, asked["namespace"])
        return {"status": {"allowed": right in self.rights}}


class Deployed:
    """The page of a cluster with a job of team-a, and one of team-b on another cluster."""

    def __init__(self) -> None:
        self.cluster, self.clock = Reviewing(), SteppedClock()
        self.shelf = Shelf(job("digits"), job("concealed", namespace="team-b", tier="rare", cluster="south"))
        self.shelf.offered = [tier("rare-spot")]
        self.shelf.offered[0]["spec"] = {"cluster": "south"}
        self.shelf.texts = [Printed("driver", "step 40")]
        self.shelf.seen = [seen_clusters()[0], lost("south", "refused")]
        self._session: ClientSession | None = None

    def namespaces(self) -> set[str]:
        """The namespaces in which a user's right to list jobs was reviewed."""
        asked = [spec["resourceAttributes"] for spec in self.cluster.asked if "token" not in spec]
        return {each["namespace"] for each in asked if each["resource"] == "tieredjobs"}

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Deployed]:
        users = ClusterUsers(self.cluster, HOST, self.clock)
        users.interval = 0.0
        async with (
            serving([self.shelf], "127.0.0.1", 0, users) as port,
            ClientSession(f"http://127.0.0.1:{port}", timeout=ClientTimeout(60)) as self._session,
        ):
            yield self

    async def get(self, path: str, user: str = "", **headers: str) -> ClientResponse:
        """The answer to a user, with these headers beside those of the user."""
        assert self._session
        bearer = {"Authorization": f"Bearer token-of-{user}"} if user else {}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self._session.get(path, headers={"Host": HOST, **bearer, **named})

    async def status(self, path: str, user: str = "", **headers: str) -> int:
        answer = await self.get(path, user, **headers)
        await answer.read()
        return answer.status

    async def text(self, path: str, user: str = "", **headers: str) -> str:
        return (await (await self.get(path, user, **headers)).text()).partition("<body>")[2]


@pytest.mark.parametrize(
    "path", ["/", "/?text=concealed", "/?phase=Running", "/tiers", "/fleet", "/jobs/west/team-a/digits"]
)
async def test_a_page_shows_only_what_the_user_may_list(path: str) -> None:
    async with Deployed().served() as page:
        assert await page.status(path, "ada") == 200
        shown = (await page.text(path, "ada")).replace('value="concealed"', "")
        assert not [word for word in ("concealed", "team-b", "rare", "south") if word in shown]
        assert "digits" in await page.text("/", "ada")


async def test_rights_in_the_whole_cluster_show_everything_with_one_review_for_all_namespaces() -> None:
    async with Deployed().served() as page:
        for path, words in {"/": ("digits", "concealed"), "/tiers": ("rare-spot",), "/fleet": ("south",)}.items():
            shown = await page.text(path, "admin")
            assert [word for word in words if word not in shown] == []
        assert len(page.cluster.asked) == 3  # the token, tieredjobs, capacitytiers


async def test_a_job_that_the_user_may_not_list_is_missing_like_one_that_does_not_exist() -> None:
    async with Deployed().served() as page:
        for end in ("", "/output"):
            answer, none = (
                await page.get(f"/jobs/west/team-b/concealed{end}", "ada"),
                f"/jobs/west/team-a/concealed{end}",
            )
            assert answer.status == 404
            assert (await answer.text()).replace("team-b", "team-a") == await (await page.get(none, "ada")).text()
            assert await page.status(f"/jobs/west/team-b/concealed{end}", "ben") == 200


async def test_output_needs_the_right_of_kubectl_logs() -> None:
    async with Deployed().served() as page:
        refused = await page.text("/jobs/west/team-a/digits/output", "ada")
        assert "it needs the right get pods/log" in refused
        assert "step 40" not in refused
        assert "step 40" in await page.text("/jobs/west/team-a/digits/output", "admin")


async def test_the_stream_tells_only_of_visible_changes_and_ends_with_the_token() -> None:
    async with Deployed().served() as page:
        mine, everything = await page.get("/changes", "ada"), await page.get("/changes", "admin")
        for namespace in ("team-b", ""):
            page.shelf.put(*page.shelf.held, changed=namespace)
            assert await everything.content.readline() == b"event: changed\n"
            await everything.content.readuntil(b"\n\n")
        page.cluster.tokens.clear()
        await page.clock.advance(REVIEW_TTL)
        page.shelf.put(*page.shelf.held, changed="team-a")
        assert await mine.content.read() == b""


async def test_the_stream_tells_of_a_change_of_a_job_that_the_user_sees() -> None:
    async with Deployed().served() as page:
        stream = await page.get("/changes", "ada")
        page.shelf.put(job("digits", "Succeeded"))
        assert await stream.content.readline() == b"event: changed\n"
        assert "Succeeded" in await page.text("/", "ada")
        stream.close()


async def test_only_a_token_that_the_cluster_accepts_names_a_user() -> None:
    forged = {"X_Forwarded_User": "admin", "X_Forwarded_Groups": "system:masters", "X_Remote_User": "admin",
              "Impersonate_User": "admin", "Impersonate_Group": "system:masters", "Cookie": "user=admin"}  # fmt: skip
    async with Deployed().served() as page:
        for headers in (
            {},
            {"Authorization": "Bearer invented"},
            {"Authorization": "Basic token-of-admin"},
            {"Authorization": "token-of-admin"},
            {"X_Forwarded_Access_Token": "invented"},
            {"Authorization": "Bearer t\u00f6ken"},
        ):
            answer = await page.get("/", **forged, **headers)
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert "digits" not in await answer.text()
        assert "concealed" not in await page.text("/", "ada", **forged)
        proxied = {"X_Forwarded_Access_Token": "token-of-ada"}
        assert "digits" in await page.text("/", **proxied)


async def test_an_ended_token_and_a_lost_right_count_for_a_minute_at_most() -> None:
    async with Deployed().served() as page:
        assert await page.status("/jobs/west/team-a/digits", "ada") == 200
        asked = len(page.cluster.asked)
        assert await page.status("/jobs/west/team-a/digits", "ada") == 200
        assert len(page.cluster.asked) == asked
        page.cluster.rights.clear()
        await page.clock.advance(REVIEW_TTL)
        assert await page.status("/jobs/west/team-a/digits", "ada") == 404
        page.cluster.tokens.clear()
        await page.clock.advance(REVIEW_TTL)
        assert await page.status("/", "ada") == 401


async def test_one_user_with_too_many_requests_does_not_slow_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_users, "REQUESTS_AT_ONCE", 3)
    async with Deployed().served() as page:
        assert [await page.status("/", "ada") for _ in range(3)] == [200] * 3
        answer = await page.get("/", "ada")
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert await page.status("/", "ben") == 200
        await page.clock.advance(1 / cluster_users.REQUESTS_PER_SECOND)
        assert await page.status("/", "ada") == 200


async def test_invented_tokens_do_not_flood_the_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_users, "TOKENS_AT_ONCE", 3)
    async with Deployed().served() as page:
        assert await page.status("/", "ada") == 200
        invented = [await page.status("/", Authorization=f"Bearer {number}") for number in range(4)]
        assert invented == [401, 401, 429, 429]
        assert await page.status("/", "ada") == 200
        assert sum("token" in spec for spec in page.cluster.asked) == 3


async def test_invented_tokens_do_not_lock_out_a_user_whose_token_is_reviewed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_users, "TOKENS_AT_ONCE", 1)
    async with Deployed().served() as page:
        assert await page.status("/", "ada") == 200
        await page.clock.advance(REVIEW_TTL)
        assert [await page.status("/", Authorization=f"Bearer {number}") for number in range(2)] == [401, 429]
        assert await page.status("/", "ada") == 200
        await page.clock.advance(cluster_users.KNOWN_TTL)
        assert [await page.status("/", Authorization=f"Bearer {number}") for number in range(2)] == [401, 429]
        assert await page.status("/", "ada") == 429


async def test_a_user_who_needs_too_many_reviews_is_refused_at_once_and_served_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reviews, "REVIEWS_AT_ONCE", 10)
    async with Deployed().served() as page:
        page.shelf.held += [job("digits", namespace=f"space-{number}") for number in range(10)]
        answer = await page.get("/", "ada")
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert len(page.namespaces()) < 12
        assert await page.status("/", "admin") == 200
        await page.clock.advance(4 / reviews.REVIEWS_PER_SECOND)
        assert await page.status("/", "ada") == 200


async def test_service_accounts_of_one_namespace_share_their_reviews(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "REVIEWS_AT_ONCE", 4)
    async with Deployed().served() as page:
        for name in ("team-c:one", "team-c:two", "team-d:one"):
            page.cluster.tokens[f"token-of-{name}"] = f"system:serviceaccount:{name}"
        assert [await page.status("/", name) for name in ("team-c:one", "team-c:two", "team-d:one")] == [200, 429, 200]


async def test_a_request_ends_when_the_cluster_is_silent_and_no_review_waits_beyond_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "VIEW_TIMEOUT", 0.05)
    monkeypatch.setattr(reviews, "REVIEWS_UNDER_WAY", 2)
    async with Deployed().served() as page:
        page.cluster.answers.clear()
        assert await page.status("/", "ada") == 503
        monkeypatch.setattr(server, "VIEW_TIMEOUT", 60.0)
        assert await page.status("/", "ben") == 429
        page.cluster.answers.set()
        assert await page.status("/tiers", "admin") in {200, 429}
        assert await page.status("/jobs/west/team-a/digits", "ada") == 200


async def test_answers_are_kept_for_all_tokens_of_a_user_and_a_no_for_longer() -> None:
    async with Deployed().served() as page:
        assert await page.status("/", "ada") == 200
        before = len(page.cluster.asked)
        page.cluster.tokens["token-of-another session"] = "ada"
        assert await page.status("/", "another session") == 200
        assert len(page.cluster.asked) == before + 1
        page.cluster.rights.add(("ada", *JOBS, "team-b"))
        await page.clock.advance(REVIEW_TTL)
        assert "concealed" not in await page.text("/", "ada")
        await page.clock.advance(REFUSAL_TTL - REVIEW_TTL)
        assert "concealed" in await page.text("/", "ada")


async def test_a_namespace_without_jobs_is_asked_about_no_more() -> None:
    async with Deployed().served() as page:
        everything = await page.get("/changes", "admin")
        for namespace in ("team-b", "team-a"):
            page.shelf.put(*page.shelf.held[:1], changed=namespace)
            assert await everything.content.readuntil(b"\n\n") == b"event: changed\ndata:\n\n"
        stream = await page.get("/changes", "ada")
        assert page.namespaces() == {"", "team-a"}
        stream.close()
        everything.close()


async def test_a_list_is_rendered_once_for_all_who_see_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = Mock(wraps=jobs_page)
    monkeypatch.setattr(server, "jobs_page", rendered)
    async with Deployed().served() as page:
        for user in ("ada", "ada", "ben"):
            assert await page.status("/", user) == 200
        assert rendered.call_count == 2
        stream = await page.get("/changes", "ada")
        page.shelf.put(job("digits", "Succeeded"))
        await stream.content.readline()
        assert "Succeeded" in await page.text("/", "ada")
        stream.close()


async def test_a_list_without_jobs_says_what_it_takes_to_see_some() -> None:
    async with Deployed().served() as page:
        page.cluster.rights.clear()
        assert "No jobs in a namespace in which you may list tieredjobs." in await page.text("/", "ada")


async def test_open_pages_of_one_user_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClusterUsers, "pages", 1)
    async with Deployed().served() as page:
        stream = await page.get("/changes", "ada")
        assert await page.status("/changes", "ada") == 503
        other = await page.get("/changes", "ben")
        assert other.status == 200
        stream.close()
        other.close()


async def test_without_an_answer_of_the_cluster_nothing_is_shown_and_the_next_request_asks_again() -> None:
    async with Deployed().served() as page:
        page.cluster.down = True
        assert await page.status("/", "ada") == 503
        page.cluster.down = False
        assert await page.status("/", "ada") == 200
        page.cluster.down = True
        assert await page.status("/jobs/west/team-c/digits/output", "ada") == 503
        page.cluster.down = False
        assert await page.status("/jobs/west/team-c/digits/output", "ada") == 404


async def test_the_page_answers_only_at_its_host_and_probes_everywhere() -> None:
    async with Deployed().served() as page:
        for host in ("localhost", "127.0.0.1:8790", "evil.example", f"{HOST}.evil.example"):
            assert await page.status("/", "admin", Host=host) == 421
        assert await page.status("/", "admin", Host=f"{HOST.upper()}:443") == 200
        assert await page.status("/healthz", Host="10.0.0.7:8790") == 200
