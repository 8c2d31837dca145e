"""The server of the page over HTTP."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest
from aiohttp import ClientSession, ClientTimeout, CookieJar

from spotladder.cli.main import main
from spotladder.display.report.facts import RunFacts
from spotladder.display.report.plan import Place, PlanPlace
from spotladder.places.beside import beside
from spotladder.places.place import Printed
from spotladder.places.this_machine import ThisMachine
from spotladder.web.beside import serve_runs
from spotladder.web.plans import Plan, no_plan
from spotladder.web.server import serving
from tests.web.builders import HOSTILE, Shelf, job, recorded_run, seen_clusters, tier


@asynccontextmanager
async def browsing(*places: object, plan: Plan = no_plan) -> AsyncIterator[ClientSession]:
    """A client of a server of these places."""
    async with (
        serving(places, "127.0.0.1", 0, plan=plan) as port,  # type: ignore[arg-type]
        ClientSession(
            f"http://127.0.0.1:{port}", timeout=ClientTimeout(60), cookie_jar=CookieJar(unsafe=True)
        ) as client,
    ):
        yield client


async def test_the_list_links_to_each_job() -> None:
    async with browsing(Shelf(job("digits"))) as client:
        listed = await (await client.get("/")).text()
        assert 'href="/jobs/west/team-a/digits"' in listed
        one = await client.get("/jobs/west/team-a/digits")
        assert one.status == 200
        assert "team-a/digits" in await one.text()


@pytest.mark.parametrize("path", ["/jobs/west/team-a/other", "/jobs/east/team-a/digits", "/jobs/west/team-b/digits"])
async def test_a_job_that_does_not_exist_is_not_found(path: str) -> None:
    async with browsing(Shelf(job("digits"))) as client:
        answer = await client.get(path)
        assert answer.status == 404
        assert "All jobs" in await answer.text()


async def test_text_of_a_job_never_becomes_markup() -> None:
    shelf = Shelf(job("digits", HOSTILE, tier=HOSTILE, message=HOSTILE, reason=HOSTILE, attempt=2))
    shelf.offered, shelf.texts = [tier(HOSTILE)], [Printed(HOSTILE, HOSTILE)]
    shelf.seen = seen_clusters(HOSTILE, HOSTILE)
    paths = ("/", "/tiers", "/fleet", "/jobs/west/team-a/digits", "/jobs/west/team-a/digits/output")
    async with browsing(shelf) as client:
        for path in (*paths, f"/?text={HOSTILE}&phase={HOSTILE}", f"/jobs/west/{HOSTILE}/x"):
            text = await (await client.get(path)).text()
            assert "<img" not in text
            assert not {"\x1b", "\x07", "\u202e"} & set(text)


async def test_every_answer_forbids_foreign_scripts_and_frames() -> None:
    async with browsing(Shelf()) as client:
        for path in ("/", "/static/live.js", "/none", "/static/../server.py"):
            policy = (await client.get(path)).headers["Content-Security-Policy"]
            assert "default-src 'none'; script-src 'self'" in policy
            assert "frame-ancestors 'none'" in policy


async def test_a_page_of_another_host_is_refused() -> None:
    async with browsing(Shelf(job("secret-name"))) as client:
        for host in ("evil.example", "evil.example:8790", "localhost.evil.example"):
            answer = await client.get("/", headers={"Host": host})
            assert answer.status == 421
            assert "secret-name" not in await answer.text()


@pytest.mark.parametrize("limit", ["spotladder.web.server.MAX_PAGES", "spotladder.web.access.OnThisMachine.pages"])
async def test_open_pages_have_a_limit(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit, 3)
    async with browsing(Shelf()) as client:
        streams = await asyncio.gather(*(client.get("/changes") for _ in range(3)))
        answer = await client.get("/changes")
        assert answer.status == 503
        assert await answer.text() == "3 pages are open, the maximum (no setting raises this limit): close one\n"
        for stream in streams:
            stream.close()


async def test_a_place_that_does_not_answer_is_named_and_its_last_jobs_stay() -> None:
    shelf = Shelf(job("digits"))
    shelf.problem = "the API server does not answer"
    async with browsing(shelf) as client:
        text = await (await client.get("/")).text()
        assert "west: the API server does not answer" in text
        assert "digits" in text


async def test_a_job_whose_records_cannot_be_read_says_why() -> None:
    shelf = Shelf(job("digits"))
    shelf.gap = "s3://bucket/prefix: no credentials"
    async with browsing(shelf) as client:
        text = await (await client.get("/jobs/west/team-a/digits")).text()
        assert "cannot be read: s3://bucket/prefix: no credentials" in text
        assert "40/100" in text


async def test_a_run_of_this_machine_has_its_report(tmp_path: Path) -> None:
    recorded_run(tmp_path)
    here = ThisMachine(tmp_path)
    here.look()
    async with browsing(here) as client:
        assert "500/500" in await (await client.get("/")).text()
        text = await (await client.get("/jobs/this-machine/default/digits-tensorflow")).text()
        assert "<h2>Timeline</h2>" in text
        assert "<h2>Attempts</h2>" in text


async def test_the_place_of_an_ended_run_in_its_plan_is_found_once_while_its_page_is_shown_without(
    tmp_path: Path,
) -> None:
    recorded_run(tmp_path)
    here = ThisMachine(tmp_path)
    here.look()
    known, asked = asyncio.Event(), []

    async def plan(facts: RunFacts) -> PlanPlace:
        asked.append(facts.job)
        await known.wait()
        return PlanPlace(100, 1.0, Place(1.5, 0.4, 1.0, 1.6, 2.0), None)

    path = "/jobs/this-machine/default/digits-tensorflow"
    async with browsing(here, plan=plan) as client, client.get("/changes") as stream:
        assert "<h2>Plan</h2>" not in await (await client.get(path)).text()
        known.set()
        assert await stream.content.readline() == b"event: changed\n"
        assert "more than 40\u202f% of the planned runs" in await (await client.get(path)).text()
    assert asked == ["digits-tensorflow"]


@pytest.mark.parametrize("endless", [False, True])
async def test_a_plan_that_cannot_be_computed_leaves_the_page_without_it(
    endless: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spotladder.web.plans.PLAN_TIMEOUT", 0.01)
    recorded_run(tmp_path)
    here = ThisMachine(tmp_path)
    here.look()

    async def plan(_facts: RunFacts) -> None:
        if not endless:
            raise OSError("no process can be started")
        await asyncio.Event().wait()

    async with browsing(here, plan=plan) as client:
        for _ in range(2):
            assert (await client.get("/jobs/this-machine/default/digits-tensorflow")).status == 200


def test_a_changed_run_is_read_again_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    here = ThisMachine(tmp_path)
    assert not here.look()
    folder = recorded_run(tmp_path)
    assert here.look()
    assert not here.look()
    (folder.path / "state.json").write_text("{")
    assert here.look()
    assert "state.json" in here.problem
    assert here.jobs() == []


def test_output_is_a_change_for_which_a_run_is_not_read_again(tmp_path: Path) -> None:
    log = recorded_run(tmp_path).path / "attempts" / "0001" / "driver.log"
    log.parent.mkdir(parents=True)
    here = ThisMachine(tmp_path)
    assert here.look()
    (before,) = here.jobs()
    log.write_text("step 1\n")
    assert here.look()
    assert not here.look()
    (after,) = here.jobs()
    assert after is before


def test_a_port_in_use_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["web", "--state-dir", str(tmp_path), "--port", str(port)]) == 5
    assert (
        capsys.readouterr().err == f"error: port {port} is in use: choose another with --port, or 0 for any free one\n"
    )


def test_a_port_that_the_user_may_not_open_is_a_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> object:
        raise PermissionError(errno.EACCES, "error while attempting to bind on address ('127.0.0.1', 80)")

    monkeypatch.setattr("spotladder.web.server.serving", refused)
    assert main(["web", "--state-dir", str(tmp_path), "--port", "80"]) == 5
    said = "error: port 80 is reserved for administrators: choose another with --port, or 0 for any free one\n"
    assert capsys.readouterr().err == said


async def test_the_output_of_each_attempt_has_a_page(tmp_path: Path) -> None:
    folder = recorded_run(tmp_path)
    for attempt in (1, 4):
        log = folder.path / "attempts" / f"{attempt:04d}" / "driver.log"
        log.parent.mkdir(parents=True)
        log.write_text(f"printed by {attempt}\ntoken ghp_{'a' * 36}\n")
    here = ThisMachine(tmp_path)
    here.look()
    address = "/jobs/this-machine/default/digits-tensorflow/output"
    async with browsing(here) as client:
        for query, said in (("", "printed by 4"), ("?attempt=1", "printed by 1"), ("?attempt=-1", "printed by 4")):
            text = await (await client.get(address + query)).text()
            assert said in text
            assert "ghp_" not in text
        assert "No output of attempt 2 is kept." in await (await client.get(f"{address}?attempt=2")).text()


async def test_output_that_cannot_be_read_says_why() -> None:
    shelf = Shelf(job("digits", attempt=1))
    shelf.gap = "s3://bucket/prefix: no credentials"
    async with browsing(shelf) as client:
        text = await (await client.get("/jobs/west/team-a/digits/output")).text()
        assert "The output of the job cannot be read: s3://bucket/prefix: no credentials" in text


async def test_a_place_that_cannot_be_followed_ends_the_server() -> None:
    class Broken(Shelf):
        async def follow(self, changed: object) -> None:
            raise RuntimeError("no more")

    with pytest.raises(ExceptionGroup) as caught:
        async with browsing(Broken()):
            await asyncio.Event().wait()
    assert caught.group_contains(RuntimeError, match="no more")


def test_a_run_has_its_page_beside_it_also_if_the_usual_port_is_in_use(tmp_path: Path) -> None:
    recorded_run(tmp_path)
    with beside(partial(serve_runs, tmp_path)) as one, beside(partial(serve_runs, tmp_path)) as other:
        assert one != other
        for address in (one, other):
            with urlopen(address) as answer:
                assert answer.status == 200
