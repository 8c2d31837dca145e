"""The page in a real browser."""

from __future__ import annotations

import time
from base64 import b64encode
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


@pytest.mark.parametrize("path", ["/", "/jobs/west/team-a/digits"])
def test_an_updated_page_looks_like_a_new_one_and_like_one_without_scripts(
    chromium: Any, served: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Screenshots of one moment, compared with each other: pictures that are kept would differ by fonts."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    with chromium.new_context() as context, chromium.new_context(java_script_enabled=False) as still:
        served.shelf.put(job("digits"))
        updated = visited(context, served.address + path)
        updated.get_by_text("live", exact=True).wait_for()
        before = picture(updated)
        served.put(job("digits", "Failed", reason="TiersExhausted", message="all tiers are exhausted"), job("another"))
        updated.get_by_text("Failed").and_(updated.locator("#live *")).first.wait_for()
        after = picture(updated)
        assert unlike(context, after, before) > 1_000
        assert unlike(context, after, picture(visited(context, served.address + path))) == 0
        assert unlike(context, after, picture(visited(still, served.address + path))) == 0


def visited(context: Any, address: str) -> Any:
    page = context.new_page()
    page.goto(address)
    return page


def picture(page: Any) -> str:
    """A screenshot of the whole page as the address of a PNG, without the state of the connection and the button that a
    page without scripts has."""
    hidden = "#connection { visibility: hidden } #filter button { display: none }"
    png = page.screenshot(full_page=True, animations="disabled", style=hidden)
    return f"data:image/png;base64,{b64encode(png).decode()}"


def unlike(context: Any, one: str, other: str) -> int:
    """The number of pixels that differ by more than the rounding of edges."""
    found: int = visited(context, "about:blank").evaluate(UNLIKE, [one, other])
    return found


UNLIKE = """async addresses => {
  const pixels = await Promise.all(addresses.map(async address => {
    const image = await createImageBitmap(await (await fetch(address)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    return canvas.getImageData(0, 0, image.width, image.height);
  }));
  const [one, other] = pixels;
  if (one.width !== other.width || one.height !== other.height) return one.data.length;
  let found = 0;
  for (let at = 0; at < one.data.length; at += 4)
    if ([0, 1, 2].some(channel => Math.abs(one.data[at + channel] - other.data[at + channel]) > 4)) found += 1;
  return found;
}"""


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


def test_pages_that_are_not_seen_leave_the_connections_of_the_browser_to_others(chromium: Any, served: Served) -> None:
    """A browser has six connections to a server, of which each page that follows changes has one."""
    with chromium.new_context() as context:
        hidden = [context.new_page() for _ in range(7)]
        for page in hidden:
            page.goto(served.address, timeout=15_000)
            page.get_by_text("live", exact=True).wait_for()
            page.evaluate(SEEN.format("true"))
        served.put(job("digits", "Succeeded"))
        hidden[0].evaluate(SEEN.format("false"))
        hidden[0].get_by_role("cell", name="Succeeded").wait_for()


SEEN = """() => {{
  Object.defineProperty(document, "hidden", {{ get: () => {}, configurable: true }});
  document.dispatchEvent(new Event("visibilitychange"));
}}"""


def test_the_page_of_a_job_that_is_deleted_says_so_and_shows_its_last_state(chromium: Any, served: Served) -> None:
    page = chromium.new_page()
    page.goto(f"{served.address}/jobs/west/team-a/digits")
    page.get_by_text("live", exact=True).wait_for()
    served.put(job("mnist"))
    page.get_by_text("The job is gone: the page shows its last state.").wait_for(timeout=10_000)
    assert page.get_by_role("heading", name="team-a/digits").count() == 1
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
