"""The rows of the page of the tiers."""

from __future__ import annotations

import re

import pytest

from spotladder.places.place import Object
from spotladder.web.tiers_page import jobs_by_tier, tier_row, tiers_page
from tests.web.builders import Shelf, job, tier

SPEC = {"tiers": [{"name": "spot", "capacityTier": "a100-spot"}, {"name": "od", "capacityTier": "a100-od"}]}


def holding(name: str, on: str, phase: str = "Running") -> Object:
    """A job whose attempt is on that tier of its own."""
    return {**job(name, phase, tier=on), "spec": SPEC}


def cells(observed: Object, *holders: Object) -> list[str]:
    """The texts of the cells of a tier's row."""
    row = tier_row(Shelf(), observed, holders, 0.0)
    return [re.sub("<[^>]+>", " ", cell).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]


def test_a_row_has_what_all_jobs_have_observed() -> None:
    observed = tier(
        "a100-spot", availability="0.850", attempts=20, evictionsPerNodeHour="0.021", nodesInUse=4,
        waits=[{"upTo": "2m", "count": 3}, {"upTo": "5m", "count": 1}],
    )  # fmt: skip
    _name, _capacity, nodes, _price, met, wait, evictions = cells(observed)
    assert (nodes, met.split(), wait, evictions) == (
        "–  4 nodes",
        ["85", "%", "of", "20"],
        "half ≤ 2m 00s 90 % ≤ 5m 00s",
        "0.021",
    )


@pytest.mark.parametrize("found", [job("new", ""), holding("ended", "spot", "Succeeded"), holding("other", "od")])
def test_a_job_that_has_ended_or_is_elsewhere_does_not_hold_a_tier(found: Object) -> None:
    held = holding("digits", "spot")
    assert jobs_by_tier([found, held])["a100-spot"] == [held]
    assert cells(tier("a100-spot"), held)[2] == "digits"


@pytest.mark.parametrize(
    "status",
    [{}, {"availability": "much", "price": "dear"}, {"availability": []}, {"conditions": [{"type": "Available"}]}],
)
def test_a_tier_without_a_readable_status_is_not_known(status: Object) -> None:
    assert cells(tier("a100-spot", **status))[1:] == ["not known", "–", "not known", "–", "–", "–"]


def test_a_tier_names_its_first_holders_and_counts_the_others() -> None:
    shelf = Shelf(*(holding(f"job-{number}", "spot") for number in range(12)))
    shelf.offered = [tier("a100-spot")]
    text = tiers_page([shelf], 0.0)
    assert text.count("/jobs/west/team-a/job-") == 8
    assert "4 more" in text


def test_without_a_cluster_the_page_says_where_tiers_are() -> None:
    assert "The page of a job shows the tiers of the job." in tiers_page([Shelf()], 0.0)
