"""The report: its figures match a run of the real core, and its page loads no resources and runs no script."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from spotladder.core.cost import estimate
from spotladder.core.model import CapacityType, JobSpec, JobState, Loss, Move, Price, Stage, Tier
from spotladder.core.reasons import Cause, Reason
from spotladder.core.savings import savings
from spotladder.display import report
from spotladder.display.records import Beat, Began, Committed, Ended, Lost, Moved, Noted, Recorded
from spotladder.display.report import gather, write_report
from spotladder.display.report.data import as_data, as_json
from spotladder.display.report.facts import Facts
from spotladder.display.report.markup import Markup, element, join
from spotladder.display.report.page import page
from spotladder.display.report.plan_comparison import compare
from spotladder.display.report.prediction import compared_costs, measured
from spotladder.display.report.table import print_report, sentences
from spotladder.errors import EnvironmentFailure
from tests.core.builders import START
from tests.display import golden
from tests.display.builders import PACE, SPEC, TOTAL, CloudEvents, PlayedRun

SCHEMA = json.loads((Path(report.__file__).parent / "schema.json").read_text(encoding="utf-8"))


def facts_of(run: PlayedRun) -> Facts:
    return gather(Recorded(tuple(run.records)), run.state)


@pytest.fixture(scope="module")
def digits() -> Facts:
    return gather(*golden.recorded_run())


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_the_numbers_of_a_recorded_run_match_the_golden_file(digits: Facts) -> None:
    golden.check("digits.report.json", as_json(digits))


def test_the_printed_table_matches_the_golden_file(digits: Facts) -> None:
    out = io.StringIO()
    print_report(digits, Console(file=out, width=40))
    golden.check("digits.report.txt", out.getvalue())


@pytest.mark.parametrize("width", [50, 60, 70, 80, 120])
def test_the_printed_table_fits_the_terminal(digits: Facts, width: int) -> None:
    out = io.StringIO()
    print_report(digits, Console(file=out, width=width, force_terminal=True, color_system=None))
    lines = out.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    assert any("EvictionNotice" in line for line in lines)


@pytest.mark.parametrize(
    "world", [CloudEvents(), CloudEvents(suspended=frozenset(range(40, 50)))], ids=["plain", "suspended"]
)
def test_the_attempts_of_the_report_agree_with_the_history_in_the_state(world: CloudEvents) -> None:
    run = PlayedRun(world=world).play()
    reported = [
        (each.number, each.tier, each.start, each.end, each.reason, each.failures, each.start_step)
        for each in facts_of(run).attempts
    ]
    kept = [
        (own.number, own.tier, own.started_at - START, own.ended_at - START, own.reason, own.failures, own.start_step)
        for own in run.state.history
    ]
    assert reported == kept
    assert len(reported) >= 4


def test_the_costs_of_attempts_add_up_to_those_of_tiers_and_the_total() -> None:
    run = PlayedRun().play()
    facts = facts_of(run)
    assert math.isclose(sum(each.cost for each in facts.attempts), facts.spent)
    assert math.isclose(sum(each.on_demand_cost for each in facts.attempts), facts.on_demand)
    for tier, record in facts.tiers:
        on_tier = [each.cost for each in facts.attempts if each.tier == tier.name]
        assert math.isclose(sum(on_tier), record.cost, abs_tol=1e-12)


def test_only_work_since_the_last_commit_counts_as_recomputed() -> None:
    facts = facts_of(PlayedRun().play())
    lost = facts.attempts[1].end_step - facts.attempts[1].committed_step
    assert lost > 0
    assert [each.recomputed for each in facts.attempts] == [0, 0, 0, lost]
    assert facts.recomputed == lost
    assert facts.time.recomputed == pytest.approx(lost / PACE)


def test_the_parts_of_the_time_add_up_to_the_length_of_the_run() -> None:
    run = PlayedRun().play()
    facts = facts_of(run)
    assert facts.steps == TOTAL
    assert facts.time.new == pytest.approx(TOTAL / PACE)
    assert facts.time.total == pytest.approx(run.state.ended_at - START)
    assert facts.time.goodput == pytest.approx(TOTAL / PACE / facts.time.total)


def test_an_uninterrupted_run_has_one_attempt_and_recomputes_no_step() -> None:
    facts = facts_of(PlayedRun(world=CloudEvents(notices={}, kills=frozenset())).play())
    assert len(facts.attempts) == 1
    assert facts.recomputed == 0
    assert facts.evictions == ()
    symbols = measured(facts)
    assert symbols is not None
    assert symbols.scenario.spot_fraction == 1
    assert symbols.scenario.max_failures == 0
    assert compared_costs(facts).cost("blended") == pytest.approx(facts.spent), "without failures the formula is exact"


def test_the_cost_formulas_use_the_measured_values_of_the_run() -> None:
    facts = facts_of(PlayedRun().play())
    symbols = measured(facts)
    assert symbols is not None
    scenario = symbols.scenario
    provisioning, starting = 3, 3
    assert scenario.hours * 3600 == pytest.approx(TOTAL / PACE + starting)
    assert scenario.total_hours * 3600 == pytest.approx(facts.time.total - provisioning), "T + M·Δt is the run's length"
    assert scenario.max_failures == facts.state.failures == 2
    assert scenario.spot_fraction == pytest.approx((25 + 18) / 80)
    assert scenario.spot_discount == pytest.approx(1 - 0.42 / 1.41)
    assert symbols.price == pytest.approx(2 * 1.41)
    amounts = {each.key: each.cost for each in compared_costs(facts)}
    assert amounts["blended"] == pytest.approx(estimate(scenario).cost * 2.82)
    assert amounts["on-demand-uninterrupted"] == pytest.approx(83 / 3600 * 2.82, rel=0.02)
    assert amounts["on-demand-formula"] == pytest.approx(scenario.hours * 2.82)
    assert amounts["paid"] == facts.spent
    assert next(iter(amounts)) == "paid"


@pytest.mark.parametrize(
    "world", [CloudEvents(), CloudEvents(notices={}, kills=frozenset())], ids=["interrupted", "uninterrupted"]
)
def test_the_report_has_the_savings_that_the_live_view_and_status_show(world: CloudEvents) -> None:
    run = PlayedRun(world=world).play()
    printed = savings(run.spec, run.state)
    assert printed is not None
    assert as_data(facts_of(run))["cost"]["savedAgainstUninterrupted"] == pytest.approx(printed)


def test_no_savings_are_reported_without_prices() -> None:
    free = tuple(replace(tier, price=Price()) for tier in SPEC.tiers)
    facts = facts_of(PlayedRun(replace(SPEC, tiers=free)).play())
    assert not compared_costs(facts)
    assert as_data(facts)["cost"]["predicted"] is None
    assert "formula" not in page(facts)
    check_page(page(facts))


def test_spot_prices_above_on_demand_are_reported_as_extra_cost() -> None:
    dear = tuple(replace(tier, price=Price(2.0, 1.0)) for tier in SPEC.tiers)
    facts = facts_of(PlayedRun(replace(SPEC, tiers=dear)).play())
    assert measured(facts) is None
    assert "extra cost" in page(facts)
    assert as_data(facts)["cost"]["savedAgainstSameNodes"] == pytest.approx(-1.0)


def interrupted_and_resumed(run: PlayedRun, at: int, away: float) -> Recorded:
    """The run with Ctrl-C at the second `at`, resumed `away` seconds later."""
    cut = START + at
    early = [record for record in run.records if record.at <= cut]
    late = [record for record in run.records if record.at > cut]
    shifted = [replace(record, at=record.at + away) for record in late]
    again = replace(cast("Any", run.records[0]), at=cut + away, resumed=True)
    return Recorded((*early, Ended(cut, 75, Reason.INTERRUPTED), again, *shifted))


def test_the_time_between_a_stop_and_the_resume_is_not_counted() -> None:
    run = PlayedRun().play()
    facts = gather(interrupted_and_resumed(run, 45, 86_400.0), run.state)
    straight = facts_of(run)
    assert facts.sessions == 2
    assert facts.breaks == ((45.0, 86_400.0),)
    assert facts.time == straight.time
    assert facts.attempts == straight.attempts
    assert facts.exit_code == 0
    assert "1d 00h" not in page(facts)
    assert "24h 00m" in page(facts)


def test_an_unfinished_run_is_reported_up_to_its_last_record() -> None:
    run = PlayedRun().play(until=50)
    facts = facts_of(run)
    assert facts.exit_code is None
    assert facts.attempts[-1].end == facts.length == 49.0
    assert facts.attempts[-1].all_ready[-1].end == 49.0
    assert facts.time.total == pytest.approx(49.0)
    check_page(page(facts))
    assert "Broken off" in page(facts)


def test_progress_of_a_program_without_heartbeats_is_taken_from_its_commits() -> None:
    run = PlayedRun().play()
    silent = Recorded(tuple(record for record in run.records if not isinstance(record, Beat)))
    facts = gather(silent, run.state)
    assert facts.steps == TOTAL
    assert facts.recomputed is None, "steps without a commit are unknown"
    assert "– recomputed" in page(facts)
    assert json.loads(as_json(facts))["steps"]["recomputed"] is None
    assert 0 < facts.time.new < facts.time.total
    assert list(facts.losses) == [1, 2, 4]


def test_steps_repeated_after_a_restart_in_place_count_as_recomputed() -> None:
    began = Began(0.0, "j", "n", JobSpec((Tier("a"),)))
    beats = [Beat(10.0 + second, 1, 10 * second) for second in range(1, 6)]  # to step 50
    commit = Committed(13.5, 1, "a", 30)
    again = [Beat(20.0 + second, 1, 30 + 10 * second) for second in range(1, 6)]  # from 30 to 80
    facts = gather(Recorded((began, *beats[:3], commit, *beats[3:], *again)), JobState())
    assert facts.recomputed == 20
    assert facts.steps == 80
    assert facts.time.new == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("counts", "failures"),
    [([1, 2], 2), ([2, 2], 2), ([1, 1, 2], 2), ([1, 2, 1], 3)],
    ids=["one by one", "two at once", "two that are one interruption", "reset in between"],
)
def test_failures_are_the_increments_of_the_tiers_count(counts: list[int], failures: int) -> None:
    began = Began(0.0, "j", "n", JobSpec((Tier("a"),)))
    start = Moved(1.0, Move(Stage.IDLE, Stage.STARTING, Reason.STARTED, 1, "a"))
    lost = [Lost(2.0, Loss(f"w{index}", Cause.UNKNOWN, 1, "a"), number) for index, number in enumerate(counts)]
    assert gather(Recorded((began, start, *lost)), JobState()).failures == failures


def test_a_heartbeat_that_repeats_the_loss_of_the_last_commit_is_not_plotted() -> None:
    began = Began(0.0, "j", "n", JobSpec((Tier("a"),)))
    records = (
        began,
        Beat(1.0, 1, 10),
        Committed(2.0, 1, "a", 20, metrics={"loss": 0.5}),
        Beat(3.0, 1, 30, metrics={"loss": 0.5}),
        Beat(4.0, 1, 40, metrics={"loss": 0.4}),
        Beat(5.0, 1, 50, metrics={"loss": math.nan}),
    )
    assert gather(Recorded(records), JobState()).losses == {1: ((20, 0.5), (40, 0.4))}


def test_a_timeline_without_its_first_record_is_rejected() -> None:
    with pytest.raises(EnvironmentFailure, match="cannot be reported"):
        gather(Recorded((Noted(1.0, "x"),)), JobState())


worlds = st.builds(
    CloudEvents,
    notices=st.dictionaries(st.integers(0, 120), st.floats(1, 8), max_size=3),
    kills=st.frozensets(st.integers(0, 120), max_size=3),
    dry=st.frozensets(st.sampled_from(["spot-a", "spot-b"])),
    provision=st.integers(0, 8),
    start=st.integers(0, 8),
    suspended=st.frozensets(st.integers(0, 120), max_size=4),
)


@settings(max_examples=60, deadline=None)
@given(world=worlds, until=st.integers(1, 400))
def test_the_numbers_of_any_run_are_consistent(world: CloudEvents, until: int) -> None:
    facts = facts_of(PlayedRun(world=world).play(until))
    time = facts.time
    assert all(part >= 0 for part in (time.new, time.recomputed, time.waiting, time.starting, time.handover, time.idle))
    assert time.total <= facts.length + 1e-6
    assert sum(each.recomputed or 0 for each in facts.attempts) == (facts.recomputed or 0)
    assert sum(each.failures for each in facts.attempts) == facts.state.failures
    assert facts.committed <= facts.steps
    assert all(each.start <= each.end for each in facts.attempts)
    assert math.isclose(sum(each.cost for each in facts.attempts), facts.spent, abs_tol=1e-9)
    jsonschema.validate(json.loads(as_json(facts)), SCHEMA)
    check_page(page(facts))


# --- the plan ---------------------------------------------------------------------------------------------------------

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
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    jsonschema.validate(data, SCHEMA)
    assert data["plan"]["costUsd"] == {**PLANNED, "formulas": 0.06, "happened": run.state.spent_usd}


# --- files -----------------------------------------------------------------------------------------------------------


def test_all_three_files_are_written_and_the_json_matches_its_schema(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "report"
    write_report(folder, *golden.recorded_run())
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json", "timeline.png"]
    jsonschema.validate(json.loads((folder / "report.json").read_text(encoding="utf-8")), SCHEMA)
    assert (folder / "timeline.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "timeline.png").stat().st_size < 300_000


def test_names_that_look_like_matplotlib_formulas_are_drawn(tmp_path: Path) -> None:
    spec = replace(SPEC, tiers=(replace(SPEC.tiers[0], name="$a_b$"), *SPEC.tiers[1:]))
    run = PlayedRun(spec, name="x$\\frac{$").play()
    write_report(tmp_path, Recorded(tuple(run.records)), run.state)


def test_a_report_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFailure, match=r"cannot write the report: .*; use another folder"):
        write_report(tmp_path / "file" / "report", *golden.recorded_run())


def test_a_run_without_attempts_has_a_report(tmp_path: Path) -> None:
    facts = write_report(tmp_path, Recorded((Began(0.0, "j", "n", SPEC),)), JobState(stage=Stage.IDLE))
    assert facts.time.goodput is None
    check_page((tmp_path / "report.html").read_text(encoding="utf-8"))


# --- the page --------------------------------------------------------------------------------------------------------


class StrictPage(HTMLParser):
    """A strict parser: every element is closed in order, and no resource is loaded and no script is run."""

    VOID = frozenset({"meta", "br", "hr"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.names: set[str] = set()
        self.text: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"a handler on {tag}"
            assert name not in {"src", "href", "xlink:href", "srcset", "action"}, f"{tag} loads {value}"
            assert "url(" not in (value or "")
            if name != "title":  # other attributes have coordinates and fixed names
                assert "nan" not in (value or "").lower().split(","), f"{tag} {name}={value}"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> out of turn"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def check_page(text: str) -> StrictPage:
    parsed = StrictPage()
    parsed.feed(text)
    parsed.close()
    assert parsed.open == []
    assert not parsed.names & {"script", "link", "iframe", "img", "object", "embed", "form", "base", "image", "use"}
    assert "http://" not in text
    assert "https://" not in text
    assert "@import" not in text
    assert "url(" not in text
    return parsed


def test_the_page_is_well_formed_and_loads_no_resources(digits: Facts) -> None:
    parsed = check_page(page(digits))
    text = " ".join(parsed.text)
    for wanted in ("team-a/digits", "Succeeded", "Timeline", "Loss", "Cost", "Attempts", "EvictionNotice", "goodput"):
        assert wanted in text
    assert {"svg", "table", "style"} <= parsed.names
    assert len(page(digits)) < 300_000


EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>\x00\u202e"


def test_names_and_messages_are_escaped_in_the_page() -> None:
    tiers = (replace(SPEC.tiers[0], name=EVIL), *SPEC.tiers[1:])
    run = PlayedRun(replace(SPEC, tiers=tiers), name=EVIL).play()
    run.records.append(Noted(run.now, EVIL))
    run.records.append(Ended(run.now, 1, Reason.APPLICATION_FAILED, EVIL))
    run.records[0] = replace(cast("Any", run.records[0]), namespace=EVIL)
    text = page(facts_of(run))
    parsed = check_page(text)
    assert "<script" not in text
    assert "<img" not in text
    assert "\x00" not in text
    assert "\u202e" not in text
    assert any("<script>alert(1)</script>" in piece for piece in parsed.text), "the name itself is shown"


@given(text=st.text(), value=st.text())
def test_text_and_attributes_of_elements_are_escaped(text: str, value: str) -> None:
    parsed = StrictPage()
    parsed.feed(element("p", text, title=value))
    parsed.close()
    assert parsed.names == {"p"}
    assert parsed.open == []


def test_markup_is_kept_and_text_is_escaped() -> None:
    assert element("b", "<", element("br"), None, class_="x y", data_x=1.50, hidden=None) == Markup(
        '<b class="x y" data-x="1.5">&lt;<br></b>'
    )
    assert join("&", Markup("&amp;")) == "&amp;&amp;"


def test_the_page_stays_small_with_many_tiers_attempts_and_steps() -> None:
    tiers = tuple(Tier(f"spot-{index}", 40, 30.0, CapacityType.SPOT, Price(0.4, 1.4)) for index in range(12))
    world = CloudEvents(notices={}, kills=frozenset(range(20, 2000, 30)), dry=frozenset(), total=3000)
    run = PlayedRun(replace(SPEC, tiers=tiers, recovery_timeout=2.0), world).play(2000)
    text = page(facts_of(run))
    check_page(text)
    assert len(facts_of(run).attempts) > 20
    assert len(text) < 600_000


def test_steps_are_shown_without_an_unknown_total(digits: Facts) -> None:
    assert sentences(digits)[0][1].startswith("400/400, ")
    assert sentences(replace(digits, total=0))[0][1].startswith("400, ")


def test_the_report_has_the_last_output_lines_of_programs(tmp_path: Path) -> None:
    recorded, state = golden.recorded_run()
    lines = ("Traceback (most recent call last):", '  File "train.py", line 3', "ValueError: <b>no</b> data")
    write_report(tmp_path, replace(recorded, printed=((2, "driver", lines),)), state)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "attempt 2, driver" in text
    assert "ValueError: &lt;b&gt;no&lt;/b&gt; data" in text
    reported = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert reported["output"] == [{"attempt": 2, "source": "driver", "lines": list(lines)}]


def test_the_report_has_no_output_section_without_output(tmp_path: Path) -> None:
    write_report(tmp_path, *golden.recorded_run())
    assert "Last output" not in (tmp_path / "report.html").read_text(encoding="utf-8")
