"""The list's figures, and the page of a job whose records cannot be read."""

from __future__ import annotations

import re
from typing import Any

from spotladder.core.model import Phase
from spotladder.web.pages import job_page, jobs_page
from spotladder.web.rows import JobRow, Selection
from tests.web.builders import Object, Shelf, job

NOW = 1_795_910_400.0


def cells(page: str, kind: str) -> list[str]:
    """The texts of these elements of the page."""
    found = re.findall(rf"<{kind}[^>]*>(.*?)</{kind}>", page, re.DOTALL)
    return [re.sub("<[^>]+>", " ", text).strip() for text in found]


def test_the_list_says_first_how_many_jobs_wait_what_was_lost_and_what_it_cost() -> None:
    jobs = (
        job("a", failures=2, cost={"spent": "25.0000", "uninterrupted": "100.0000"}),
        job("b", "Provisioning", failures=1, cost={"spent": "30.5000"}),
        job("c", "Failed", cost={"spent": ">1.0000"}),
        job("d", "Succeeded"),
    )
    shelf = Shelf(*jobs)
    page = jobs_page([shelf], [JobRow.of(shelf, each, NOW) for each in jobs], Selection())
    found = dict(zip(cells(page, "dt"), cells(page, "dd"), strict=True))
    assert found == {
        "waiting": "1",
        "training": "1",
        "failed": "1",
        "ended": "1",
        "workers lost": "3",
        "spent": "$56.50 75\u202f% saved",
    }


def test_the_filter_offers_all_phases_because_a_job_may_change_while_the_page_is_open() -> None:
    page = jobs_page([Shelf()], [], Selection())
    assert cells(page, "option") == ["all phases", *sorted(Phase)]


def shown(**status: Any) -> str:
    held: Object = job("digits", failures=2, **status)
    return job_page(Shelf(held), held, None, NOW, "The records of the job cannot be read: no access")


def test_a_job_without_readable_records_has_the_tiers_and_attempts_of_its_status() -> None:
    page = shown(
        tiers=[
            {"name": "spot", "attempts": 1, "failures": 2, "nodeSeconds": 5400, "cost": "1.2000", "spent": "MaxWait"},
            {"name": "od"},
        ],
        attempts=[
            {
                "number": 1, "tier": "spot", "startedAt": "2026-11-29T00:00:00Z", "runningAt": "2026-11-29T00:02:00Z",
                "endedAt": "2026-11-29T01:02:00Z", "endStep": 40, "failures": 2, "reason": "EvictionNotice",
            },
            {"number": 2, "tier": "spot", "startedAt": "2026-11-29T01:02:00Z", "endedAt": "2026-11-29T01:12:00Z"},
        ],
    )  # fmt: skip
    rows = [cells(row, "td") for row in re.findall(r"<tr>(.*?)</tr>", page)]
    assert [row for row in rows if row] == [
        ["spot", "1", "2", "1.50", "$1.2000", "MaxWait"],
        ["od", "0", "0", "0.00", "–", "–"],
        ["1", "spot", "2m 00s", "1h 00m", "0 → 40", "2", "EvictionNotice"],
        ["2", "spot", "10m 00s", "–", "0 → 0", "0", "–"],
    ]
    assert "The records of the job cannot be read: no access" in page


def test_a_job_without_attempts_has_no_empty_tables() -> None:
    assert "<table" not in shown()
