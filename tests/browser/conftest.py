"""A real Chromium, and the page on a server of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from spotladder.places.place import FollowedPlace, Printed
from spotladder.timestamps import utc_timestamp
from spotladder.web.server import serving
from tests.absent import absent
from tests.web.builders import Shelf, job, seen_clusters, tier

OFFERED = tier(
    "a100-spot",
    conditions=[
        {
            "type": "Available",
            "status": "True",
            "reason": "Granted",
            "message": "digits got its nodes",
            "lastTransitionTime": "2026-11-29T00:00:00Z",
        }
    ],
    price="1.2",
    onDemandPrice="3.6",
    prices=[{"since": f"2026-11-{day}T00:00:00Z", "price": price} for day, price in ((10, "1.1"), (20, "1.2"))],
    waits=[{"upTo": "2m", "count": 3}],
)


@contextmanager
def opened_chromium() -> Iterator[Any]:
    """The browser. `SPOTLADDER_CHROMIUM` is its program; default: the chromium in the path."""
    program = os.environ.get("SPOTLADDER_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        absent("playwright is missing: make setup-web", "web")
    if program is None:
        absent("chromium is missing: install it, or set SPOTLADDER_CHROMIUM", "web")
    with sync_playwright() as playwright:
        # Chromium's own sandbox needs rights that root in a container does not have. The page is the test's.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with opened_chromium() as browser:
        yield browser


class Served:
    """A shelf of jobs, served by a thread. `places` replace the shelf."""

    def __init__(self, places: Sequence[FollowedPlace] = ()) -> None:
        times = {"startedAt": time.time() - 9_000, "runningAt": time.time() - 8_000, "endedAt": time.time() - 900}
        ended = {"number": 1, "tier": "spot-a", **{key: utc_timestamp(at) for key, at in times.items()}}
        spec = {"tiers": [{"name": "spot-a", "capacityTier": "a100-spot"}]}
        held = {**job("digits", attempts=[ended]), "spec": spec}
        self.shelf = Shelf(held, job("mnist", "Failed"), job("opt", "Provisioning"))
        self.shelf.offered = [OFFERED]
        self.shelf.texts = [Printed("driver", "step 39 of 100\nstep 40 of 100\n")]
        self.shelf.seen = seen_clusters()
        self.address = ""
        self._places = places or [self.shelf]
        self._loop = asyncio.new_event_loop()
        self._started, self._ended = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    async def _serve(self) -> None:
        async with serving(self._places, "127.0.0.1", 0) as port:
            self.address = f"http://127.0.0.1:{port}"
            self._started.set()
            await self._ended.wait()

    def put(self, *jobs: dict[str, Any]) -> None:
        """Replace the jobs while the page is open."""
        self._loop.call_soon_threadsafe(self.shelf.put, *jobs)

    def __enter__(self) -> Served:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_error: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def served() -> Iterator[Served]:
    with Served() as found:
        yield found
