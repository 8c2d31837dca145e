"""Takes the screenshot of the page that the documentation shows: `make pictures`.

The jobs are examples, and one is the recorded run of `make demo`. Chromium draws text differently in each version, so
no test compares the picture.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from spotladder.places.this_machine import ThisMachine
from spotladder.timestamps import utc_timestamp
from tests.browser.conftest import Served, opened_chromium
from tests.web.builders import Object, Shelf, job, recorded_run

PICTURE = Path(__file__).parents[2] / "docs/images/jobs-page.png"
WIDTH, HEIGHT = 1080, 740


def example(name: str, phase: str, tier: str, steps: tuple[int, int], cost: tuple[str, int], **status: Any) -> Object:
    """A job that has done the first of these steps, and has spent and saved so much in dollars and percent."""
    progress = {"step": steps[0], "total": steps[1], "text": f"{steps[0]:,}/{steps[1]:,}"}
    whole = f"{float(cost[0]) / (1 - cost[1] / 100):.2f}"
    paid = {"spent": cost[0], "savingsPercent": str(cost[1]), "uninterrupted": whole}
    made = job(name, phase, tier=tier, progress=progress, cost=paid, **status)
    made["metadata"]["creationTimestamp"] = utc_timestamp(time.time() - 4 * steps[0])
    return made


def examples() -> list[Object]:
    """Jobs in the phases that people look for."""
    now = time.time()
    wait = {
        "message": "2 of 8 pods wait for nodes",
        "since": utc_timestamp(now - 250),
        "until": utc_timestamp(now + 350),
        "timer": "provisionTimeout",
        "then": "the job leaves the tier",
    }
    return [
        example("llama-sft", "Running", "h100-spot-a", (18_400, 24_000), ("412.60", 64), failures=2),
        example(
            "protein-fold",
            "Provisioning",
            "h100-spot-b",
            (9_120, 40_000),
            ("198.05", 61),
            failures=3,
            waiting=wait,
        ),
        example("vit-pretrain", "Running", "a100-on-demand", (71_300, 90_000), ("655.40", 31), failures=4),
        example("asr-small", "Draining", "l4-spot", (2_950, 5_000), ("6.31", 69), failures=1),
        example("ranker", "Succeeded", "l4-spot", (12_000, 12_000), ("15.88", 70), failures=0),
    ]


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder, opened_chromium() as browser:
        recorded_run(Path(folder))
        shelf = Shelf(*examples())
        with Served([shelf, ThisMachine(Path(folder))]) as served:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(served.address)
            page.get_by_text("digits-tensorflow").wait_for()
            page.screenshot(path=PICTURE)


if __name__ == "__main__":
    main()
