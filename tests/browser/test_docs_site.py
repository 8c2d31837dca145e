"""The documentation as a site: it builds without a warning, and works from files without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.absent import absent
from tests.docs.markdown import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs-build` builds it. A link to a missing page or heading fails the build."""
    try:
        import mkdocs  # noqa: F401
    except ModuleNotFoundError:
        absent("mkdocs is missing: make setup-web", "web")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_search_works_from_files_and_no_request_leaves_the_machine(site: Path, chromium: Any) -> None:
    page = chromium.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.get_by_placeholder("Search").click()
    page.get_by_placeholder("Search").press_sequentially("maxFailures")
    page.wait_for_selector(".md-search-result__link[href*='tiers.html']")
    for name in ("concepts.html", "project/examples/any-script/index.html"):
        page.goto((site / name).as_uri())
        assert page.locator("h1").count() == 1
    page.close()
    assert len(requested) > 5
    assert [url for url in requested if not url.startswith(("file:", "data:", "blob:"))] == []


def test_no_page_is_wider_than_a_phone(site: Path, chromium: Any) -> None:
    context = chromium.new_context(viewport={"width": 360, "height": 740}, java_script_enabled=False)
    page = context.new_page()
    wide = []
    for file in sorted(site.glob("*.html")):
        page.goto(file.as_uri())
        if page.evaluate("document.documentElement.scrollWidth") > 360:
            wide.append(file.name)
    context.close()
    assert wide == []
