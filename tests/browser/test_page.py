"""The page in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.places.place import Printed
from spotladder.places.recorded import RecordedJobs
from tests.browser.conftest import Served
from tests.web.builders import HOSTILE, RECORDED, job

PAGES = (
    *("/", "/tiers", "/fleet", "/jobs/west/team-a/digits", "/jobs/west/team-a/digits/output"),
    "/jobs/west/team-a/none",
)

SCREENS = [(360, 740, "light"), (1280, 900, "dark"), (3840, 2160, "light")]


@pytest.mark.parametrize(("width", "height", "scheme"), SCREENS)
def test_no_page_has_an_obstacle_for_anyone(
    chromium: Any, served: Served, width: int, height: int, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True
    ) as context:
        page = context.new_page()
        for path in PAGES:
            page.goto(served.address + path)
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} scrolls sideways"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_recorded_run_has_its_report(chromium: Any, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    place = RecordedJobs(str(RECORDED))
    place.look()
    with Served([place]) as served, chromium.new_context(color_scheme=scheme, bypass_csp=True) as context:
        page = context.new_page()
        page.goto(served.address)
        page.get_by_role("link", name="digits-tensorflow").click()
        page.get_by_role("heading", name="Timeline").wait_for()
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_a_change_is_visible_without_a_reload(chromium: Any, served: Served) -> None:
    page = chromium.new_page()
    page.goto(served.address)
    page.get_by_text("live", exact=True).wait_for()
    served.put(job("digits", "Succeeded"), job("another"))
    page.get_by_role("link", name="another").wait_for()
    page.get_by_role("cell", name="Succeeded").wait_for()
    page.get_by_role("link", name="digits").click()
    page.get_by_role("heading", name="team-a/digits").wait_for()
    served.put(job("digits", "Failed", reason="TiersExhausted", message="all tiers are exhausted"))
    page.get_by_text("all tiers are exhausted").first.wait_for()
    page.close()


def test_a_page_that_is_refused_for_a_while_connects_again_and_shows_what_it_missed(
    chromium: Any, served: Served
) -> None:
    page = chromium.new_page()
    refused: list[Any] = []

    def answer(route: Any) -> None:
        if refused:
            route.continue_()
            return
        refused.append(route)
        served.put(job("digits", "Succeeded"), job("missed"))
        route.fulfill(status=503, body="refused")

    page.route("**/changes", answer)
    page.goto(served.address)
    page.get_by_role("link", name="missed").wait_for()
    served.put(job("digits", "Failed"))
    page.get_by_role("cell", name="Failed").wait_for()
    page.close()


def test_the_filter_works_while_typing_and_is_part_of_the_address(chromium: Any, served: Served) -> None:
    page = chromium.new_page()
    page.goto(served.address)
    page.get_by_label("Filter").type("mni")
    page.get_by_role("link", name="digits").wait_for(state="detached")
    assert "text=mni" in page.url
    page.reload()
    assert page.get_by_label("Filter").input_value() == "mni"
    assert page.get_by_role("row").count() == 2
    page.get_by_role("link", name="Failures").click()
    page.wait_for_url("**sort=failures**")
    assert "text=mni" in page.url
    page.close()


def test_the_page_works_without_scripts(chromium: Any, served: Served) -> None:
    with chromium.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(served.address)
        page.get_by_label("Phase").select_option("Failed")
        page.get_by_role("button", name="Show").press("Enter")
        page.wait_for_url("**phase=Failed**")
        assert page.get_by_role("row").count() == 2
        page.get_by_role("link", name="mnist").click()
        page.get_by_role("heading", name="team-a/mnist").wait_for()


def test_hostile_text_runs_no_script_and_the_page_asks_no_other_host(chromium: Any, served: Served) -> None:
    tiers = [{"name": HOSTILE, "cost": HOSTILE, "spent": HOSTILE}]
    attempts = [{"number": 1, "tier": HOSTILE, "reason": HOSTILE}]
    served.put(job("digits", HOSTILE, tier=HOSTILE, message=HOSTILE, reason=HOSTILE, tiers=tiers, attempts=attempts))
    page = chromium.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in ("/", "/jobs/west/team-a/digits"):
        page.goto(served.address + path)
        page.get_by_text("live", exact=True).wait_for()
        assert "owned" not in page.title()
        assert page.locator("img").count() == 0
    assert {url.split("/")[2] for url in asked} == {served.address.split("/")[2]}
    page.close()


def test_a_server_that_ends_is_named_and_the_last_jobs_stay(chromium: Any) -> None:
    page = chromium.new_page()
    with Served() as served:
        page.goto(served.address)
        page.get_by_text("live", exact=True).wait_for()
    page.get_by_text("The connection is lost").wait_for()
    assert page.get_by_role("link", name="digits").count() == 1
    page.close()


def test_the_output_of_a_running_program_is_followed_at_its_end(chromium: Any, served: Served) -> None:
    lines = "".join(f"step {number}\n" for number in range(200))
    served.shelf.texts = [Printed("driver", lines)]
    page = chromium.new_page()
    page.goto(f"{served.address}/jobs/west/team-a/digits/output")
    served.shelf.texts = [Printed("driver", f"{lines}step 200\n")]
    box = page.get_by_role("region", name="Output of driver")
    box.get_by_text("step 200").wait_for()
    assert box.evaluate("box => box.scrollHeight - box.scrollTop - box.clientHeight < 4")
    box.evaluate("box => { box.scrollTop = 10 }")
    served.shelf.texts = [Printed("driver", f"{lines}step 201\n")]
    box.get_by_text("step 201").wait_for()
    assert box.evaluate("box => box.scrollTop") == 10
    page.close()
