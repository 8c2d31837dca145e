"""The rows of the list: their figures, the filter and the order."""

from __future__ import annotations

import pytest

from spotladder.web.rows import JobRow, Selection
from tests.web.builders import Shelf, job

NOW = 1_795_910_400.0


def rows(*jobs: dict[str, object]) -> list[JobRow]:
    return [JobRow.of(Shelf(), each, NOW) for each in jobs]


def names(chosen: dict[str, str], *jobs: dict[str, object]) -> list[str]:
    return [row.name for row in Selection.of(chosen).applied(rows(*jobs))]


def test_a_row_has_the_figures_of_the_status() -> None:
    waiting = {"message": "0/5 nodes are available", "since": "2026-11-29T00:00:00Z"}
    (row,) = rows(job("a", "Provisioning", failures=2, waiting=waiting, cost={"spent": ">1.5000"}))
    assert (row.share, row.failures, row.spent, row.cost) == (0.4, 2, 1.5, ">$1.5000")
    assert row.why.startswith("0/5 nodes are available")


@pytest.mark.parametrize("spent", ["unknown", "", "1.2.3", "²", "-1", "inf"])
def test_an_amount_that_is_no_amount_is_not_counted(spent: str) -> None:
    (row,) = rows(job("a", cost={"spent": spent, "uninterrupted": spent}))
    assert (row.spent, row.uninterrupted) == (0.0, 0.0)


def test_a_deleted_job_keeps_its_phase_and_says_that_it_is_deleted() -> None:
    (row,) = rows({**job("a", "Succeeded"), "deleted": True})
    assert (row.phase, row.why) == ("Succeeded", "deleted")


def test_a_job_without_a_status_is_new() -> None:
    (row,) = rows({"metadata": {"name": "a", "namespace": "team-a"}})
    assert (row.phase, row.share, row.spent) == ("New", None, 0.0)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, ["a", "b", "c"]),
        ({"text": "SPOT-B"}, ["b"]),
        ({"text": "team-a c"}, ["c"]),
        ({"phase": "Failed"}, ["c"]),
        ({"text": "nothing"}, []),
        ({"sort": "cost"}, ["c", "a", "b"]),
        ({"sort": "-cost"}, ["b", "a", "c"]),
        ({"sort": "-failures"}, ["a", "c", "b"]),
        ({"sort": "colour"}, ["a", "b", "c"]),
        ({"sort": "-phase"}, ["c", "b", "a"]),
    ],
)
def test_the_selection_filters_and_sorts(chosen: dict[str, str], expected: list[str]) -> None:
    jobs = (
        job("a", failures=3, cost={"spent": "2.0"}),
        job("b", tier="spot-b", cost={"spent": "3.0"}),
        job("c", "Failed", failures=1, cost={"spent": "1.0"}),
    )
    assert names(chosen, *jobs) == expected


def test_the_list_begins_with_jobs_that_wait_and_ends_with_those_that_have_ended() -> None:
    phases = ("Succeeded", "Failed", "Suspended", "Running", "Provisioning", "Draining", "Deleted")
    jobs = [job(phase.lower(), phase) for phase in phases]
    assert names({}, *jobs) == ["draining", "provisioning", "running", "failed", "deleted", "succeeded", "suspended"]


def test_a_second_click_on_a_heading_turns_the_order() -> None:
    chosen = Selection.of({"text": "a b", "sort": "cost"})
    assert chosen.by("cost") == "?text=a+b&sort=-cost"
    assert Selection.of({"sort": "-cost"}).by("cost") == "?sort=cost"
    assert Selection.of({"sort": "-cost"}).by("name") == "?sort=name"
