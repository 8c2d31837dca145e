"""The page of `spotladder web` with 2,000 jobs and 200 open pages, in a real Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import IO, Any

from tests.bench.rows import Row, limited, main

JOBS = 2000
OPEN_PAGES = 200
PASSES = 9

FIRST_PAINT, FILTER, UPDATE, MEMORY = 1.0, 0.1, 1.0, 150.0
"""Limits: seconds, and MB of the server."""

PAINTED = """() => new Promise((done) => new PerformanceObserver((seen) => {
  const paint = seen.getEntriesByName("first-contentful-paint")[0];
  if (paint) done(paint.startTime);
}).observe({ type: "paint", buffered: true }))"""
"""Milliseconds from the request of the page to its first content."""

FILTERED = """async (text) => {
  const input = document.getElementById("text");
  const live = document.getElementById("live");
  const changed = new Promise((done) => new MutationObserver(done).observe(live, { childList: true }));
  const began = performance.now();
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  await changed;
  return performance.now() - began;
}"""
"""Milliseconds from a change of the filter to the list that it selects."""


class Server:
    """The server as a process of its own. A line that is written to `changes` becomes the message of the first job."""

    def __init__(self, port: int, process: int, changes: IO[str]) -> None:
        self.address, self.port, self._process, self._changes = f"http://127.0.0.1:{port}", port, process, changes

    def put(self, message: str) -> float:
        """Change the first job; returns when."""
        began = time.perf_counter()
        print(message, file=self._changes, flush=True)
        return began

    def megabytes(self) -> float:
        status = Path(f"/proc/{self._process}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) * 1024 / 1e6


@contextmanager
def server() -> Iterator[Server]:
    command = [sys.executable, "-m", "tests.bench.served", str(JOBS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Server(int(process.stdout.readline()), process.pid, process.stdin)
        finally:
            process.terminate()


def measure() -> Sequence[Row]:
    from playwright.sync_api import sync_playwright

    with server() as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        paints, filters = [], []
        for number in range(PASSES):
            page.goto(served.address)
            paints.append(page.evaluate(PAINTED) / 1000)
            filters.append(page.evaluate(FILTERED, f"job-1{number}") / 1000)
        page.goto(served.address)
        alone = median(_update(page, served, f"alone {number}") for number in range(PASSES))
        streams = [_stream(served.port) for _ in range(OPEN_PAGES)]
        crowded = median(_update(page, served, f"crowded {number}") for number in range(PASSES))
        memory = served.megabytes()
        for stream in streams:
            stream.close()
        browser.close()
    return [
        limited(f"first paint of the list of {JOBS:,} jobs", median(paints), "s", FIRST_PAINT),
        limited("filter, from the input to the list", median(filters), "s", FILTER),
        limited("update of one job, from the change to the page", alone, "s", UPDATE),
        limited(f"the same with {OPEN_PAGES} open pages", crowded, "s", UPDATE),
        limited(f"memory of the server with {OPEN_PAGES} open pages", memory, "MB", MEMORY),
    ]


def _update(page: Any, served: Server, message: str) -> float:
    """Seconds from a change of a job to the page that shows it."""
    page.get_by_text("live", exact=True).wait_for()
    began = served.put(message)
    page.get_by_text(message).wait_for()
    return time.perf_counter() - began


def _stream(port: int) -> HTTPConnection:
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/changes")
    assert connection.getresponse().status == 200
    return connection


NOTE = f"Medians of {PASSES} passes. A third of the jobs trains, a third waits, and a third has ended."

if __name__ == "__main__":
    missing = "" if shutil.which("chromium") else "chromium is missing"
    main(measure, "The page of all jobs", note=NOTE, skipped=missing)
