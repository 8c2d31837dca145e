"""The page of the report is well-formed, loads no resources and runs no script."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from spotladder.core.model import CapacityType, Price, Tier
from spotladder.core.reasons import Reason
from spotladder.display.report import gather, write_report
from spotladder.display.report.facts import RunFacts
from spotladder.display.report.markup import Markup, element, join
from spotladder.display.report.page import page
from spotladder.records.model import Ended, Noted
from tests.display.builders import SPEC, CloudEvents, PlayedRun
from tests.display.report_checks import check_page, facts_of, recorded


def test_the_page_is_well_formed_and_loads_no_resources(digits: RunFacts) -> None:
    parsed = check_page(page(digits))
    text = " ".join(parsed.text)
    sections = ("Timeline", "Where restarts go", "Loss", "Cost", "Attempts")
    for wanted in ("team-a/digits", "Succeeded", *sections, "EvictionNotice", "goodput"):
        assert wanted in text
    assert {"svg", "table", "style"} <= parsed.names
    assert len(page(digits)) < 300_000


def test_a_run_that_can_be_continued_has_not_failed_and_its_attempt_has_not_ended_by_its_start() -> None:
    run = PlayedRun().play(20)
    live = replace(facts_of(run), going_on=True)
    assert [live.ended_by(each) for each in live.attempts] == ["running"]
    run.records.append(Ended(run.now, 5, Reason.INTERRUPTED, "the disk is full"))
    facts = facts_of(run)
    text = "".join(check_page(page(facts)).text)
    assert "Interrupted in 20s, 1 attempt, 0 failures: the disk is full" in text
    assert [facts.ended_by(each) for each in facts.attempts] == ["Interrupted"]


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


def test_markup_is_kept_and_text_is_escaped() -> None:
    assert element("b", "<", element("br"), None, class_="x y", data_x=1.50, hidden=None) == Markup(
        '<b class="x y" data-x="1.5">&lt;<br></b>'
    )
    assert join("&", Markup("&amp;")) == "&amp;&amp;"


def test_the_page_stays_small_with_many_tiers_attempts_and_steps() -> None:
    tiers = tuple(Tier(f"spot-{index}", 40, 30.0, CapacityType.SPOT, Price(0.4, 1.4)) for index in range(12))
    world = CloudEvents(notices={}, kills=frozenset(range(20, 900, 30)), dry=frozenset(), total=3000)
    run = PlayedRun(replace(SPEC, tiers=tiers, recovery_timeout=2.0), world).play(900)
    text = page(facts_of(run))
    check_page(text)
    assert len(facts_of(run).attempts) > 20
    assert len(text) < 600_000


def test_the_report_has_the_last_output_lines_of_programs(tmp_path: Path, run: PlayedRun) -> None:
    timeline = recorded(run)
    write_report(tmp_path, gather(timeline))
    assert "Last output" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    lines = ("Traceback (most recent call last):", '  File "train.py", line 3', "ValueError: <b>no</b> data")
    write_report(tmp_path, gather(replace(timeline, printed=((2, "driver", lines),))))
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "attempt 2, driver" in text
    assert "ValueError: &lt;b&gt;no&lt;/b&gt; data" in text
    reported = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert reported["output"] == [{"attempt": 2, "source": "driver", "lines": list(lines)}]
