"""The report compares a plan with the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.display.figures import span
from spotladder.display.records import Recorded
from spotladder.display.report import write_report
from spotladder.display.report.plan_comparison import compare
from tests.display.builders import SPEC, PlayedRun
from tests.display.report_checks import check_json, check_page, facts_of

PLANNED = {"mean": 0.05, "p10": 0.01, "p50": 0.04, "p90": 0.09}
PLAN = {
    "accounting": "blended",
    "workers": SPEC.workers,
    "tiers": [
        {"name": tier.name, "expectedHours": 0.01, "evictionsPerNodeHour": 10.0 if tier is SPEC.tiers[0] else None}
        for tier in SPEC.tiers
    ],
    "choices": [
        {
            "maxFailures": None,
            "totalHours": 0.03,
            "expectedFailures": 1.5,
            "accountings": {"blended": {"costUsd": 0.06}},
        }
    ],
    "simulation": {
        "costUsd": PLANNED,
        "finishHours": PLANNED,
        "losses": 2.0,
        "lossesPercentiles": {"p10": 0.0, "p50": 2.0, "p90": 4.0},
        "tiers": [{"name": tier.name, "costUsd": PLANNED, "hours": 0.02} for tier in SPEC.tiers[:1]],
    },
}


def test_a_plan_is_compared_with_the_run_for_the_job_and_each_tier() -> None:
    run = PlayedRun().play()
    facts = facts_of(run)
    found = compare(PLAN, run.state, run.state.ended_at or 0.0, facts)
    job = {one.key: one for one in found.job}
    assert job["costUsd"].happened == facts.spent
    assert job["hours"].happened == pytest.approx(facts.time.total / 3600)
    assert job["failures"].happened == facts.failures
    assert job["lostWorkHours"].happened == pytest.approx(facts.time.recomputed / 3600) != 0
    assert job["failures"].planned == {"mean": 2.0, "p10": 0.0, "p50": 2.0, "p90": 4.0}
    assert list(found.tiers) == [tier.name for tier in SPEC.tiers]
    for key in ("costUsd", "failures", "lostWorkHours"):
        of_tiers = [one.happened or 0.0 for tier in found.tiers.values() for one in tier if one.key == key]
        assert sum(of_tiers) == pytest.approx(job[key].happened), key
    first = {one.key: one for one in found.tiers[SPEC.tiers[0].name]}
    assert first["failures"].formulas == pytest.approx(0.01 * SPEC.workers * 10.0)
    assert found.ended


def test_durations_have_the_format_of_the_rest_of_the_report() -> None:
    run = PlayedRun().play()
    rows = {name: cells for name, *cells in compare(PLAN, run.state, run.state.ended_at or 0.0, facts_of(run)).rows()}
    assert rows["Takes"] == ["2m 24s", "36s", "5m 24s", "3m 00s", "1m 48s", span(facts_of(run).time.total)]
    assert rows["Time on spot-a"][3:5] == ["1m 12s", "36s"]
    assert rows["Lost work"][-1] == span(facts_of(run).time.recomputed)


def test_the_lost_work_belongs_to_the_tier_that_lost_it() -> None:
    facts = facts_of(PlayedRun().play())
    (loser,) = [each for each in facts.attempts if each.lost_work]
    assert loser.end_step > loser.committed_step
    assert loser.lost_work == pytest.approx(facts.time.recomputed)


def test_the_page_and_the_json_have_the_plan(tmp_path: Path) -> None:
    run = PlayedRun().play()
    recorded = Recorded(tuple(run.records))
    found = compare(PLAN, run.state, run.state.ended_at or 0.0, facts_of(run))
    write_report(tmp_path, recorded, run.state, found)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    check_page(text)
    assert "<h2>The plan and the run</h2>" in text
    assert "<td>Lost work on spot-a</td>" in text
    data = check_json((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert data["plan"]["costUsd"] == {**PLANNED, "formulas": 0.06, "happened": run.state.spent_usd}
