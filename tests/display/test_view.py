"""The live view, the plain lines, and the choice between them."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from spotladder.cli.report_table import sentences
from spotladder.core.model import Price
from spotladder.display.figures import money
from spotladder.display.report.page import page
from spotladder.display.view import LiveView, PlainView, view_on
from spotladder.records.model import Billed
from spotladder.records.recorded_jobs import as_job
from tests import golden
from tests.display.builders import SPEC, PlayedRun
from tests.display.drawing import WAITS, at
from tests.display.report_checks import check_page, facts_of, recorded


def plainly(run: PlayedRun, history: int = 0) -> list[str]:
    out = io.StringIO()
    with PlainView(Console(file=out, width=40), run.records[:history]) as view:
        shots = iter(run.shots)
        for record in run.records[history:]:
            view.add(record)
            if isinstance(record, Billed):
                view.update(next(shots))
    return out.getvalue().splitlines()


def test_plain_lines_match_the_golden_file(run: PlayedRun) -> None:
    golden.check("display/golden/view-plain.txt", "\n".join(plainly(run)) + "\n")


def test_a_cost_without_all_prices_is_a_lower_bound_or_a_dash() -> None:
    priced, unpriced = SPEC.tiers[2], replace(SPEC.tiers[0], price=Price(known=False))
    run = PlayedRun(replace(SPEC, tiers=(unpriced, priced)))
    lines = [line for line in plainly(run.play()) if "cost " in line]
    assert "cost –, saved –" in lines[1]
    assert "cost >$0.0" in lines[-1]
    facts = facts_of(run)
    assert [text for label, text in sentences(facts) if label == "paid"] == [f">{money(facts.spent)}"]
    texts = check_page(page(facts)).text
    assert texts.count(f">{money(facts.spent)}") == 1
    assert "$0.0000" not in texts[texts.index("Tiers") :]
    job = as_job(recorded(run), "Succeeded")
    assert job is not None
    assert (job["status"]["cost"]["spent"], job["status"]["cost"]["unpriced"]) == (f">{facts.spent:.4f}", ["spot-a"])


def test_events_before_a_resume_are_not_printed_again(run: PlayedRun) -> None:
    assert len(plainly(run, history=60)) < len(plainly(run))
    assert not any("begins" in line for line in plainly(run, history=60))


def test_terminals_get_the_live_view_and_other_outputs_plain_lines() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80, height=24)
    assert isinstance(view_on(terminal).view, LiveView)
    assert isinstance(view_on(Console(file=io.StringIO())).view, PlainView)
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(view_on(dumb).view, PlainView)


class Closed(io.StringIO):
    """A terminal that is closed after the given number of writes."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    def write(self, text: str) -> int:
        self.left -= 1
        if self.left < 0:
            raise OSError(5, "Input/output error")
        return super().write(text)


@pytest.mark.parametrize("writes", [0, 1, 5, 20])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_continues_after_its_terminal_was_closed(run: PlayedRun, writes: int, terminal: bool) -> None:
    out = Closed(writes)
    with view_on(Console(file=out, force_terminal=terminal, width=80, height=24)) as view:
        for record, shot in zip(run.records, run.shots, strict=False):
            view.add(record)
            view.update(shot)
    assert out.left < 0, "at least one write failed"


PIPED = """
import sys
from rich.console import Console
from spotladder.records.model import Noted
from spotladder.display.view import view_on
with view_on(Console()) as view:
    for number in range(5_000):  # more than a pipe holds
        view.add(Noted(float(number), "x" * 50))
sys.stderr.write("continued to its end")
"""


def test_a_run_continues_after_the_reader_of_its_pipe_ended() -> None:
    piped = subprocess.Popen([sys.executable, "-c", PIPED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert piped.stdout is not None
    assert piped.stderr is not None
    try:
        piped.stdout.readline()
        piped.stdout.close()
        assert piped.stderr.read() == "continued to its end"
    finally:
        piped.kill()
        piped.wait()
        piped.stderr.close()


def test_the_live_view_leaves_its_last_picture_on_the_screen(run: PlayedRun) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=24, color_system=None)
    with LiveView(console) as view:
        for record in run.records:
            view.add(record)
        for shot in run.shots:
            view.update(shot)
    written = out.getvalue()
    last = written[written.rindex("team-a/digits") :]
    assert "Succeeded" in last
    assert "400/400" in last
    assert written.rstrip("\n").endswith("\x1b[?25h"), "the cursor is shown again"


def test_after_a_resize_the_screen_is_cleared_and_the_picture_fits(run: PlayedRun) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=24, color_system=None)
    with LiveView(console) as view:
        for record in run.records:
            view.add(record)
        view.update(run.shots[20])
        before = len(out.getvalue())
        console.size = (50, 20)
        view.update(run.shots[21])
        after = out.getvalue()[before:]
    assert "\x1b[2J" in after
    assert max(cell_len(line) for line in after.split("\x1b[2J")[1].splitlines() if "\x1b" not in line) <= 50


def test_plain_lines_report_changes_of_the_phase_of_the_start(run: PlayedRun) -> None:
    console = Console(file=io.StringIO(), width=100)
    view = PlainView(console)
    snapshot = run.shots[0]
    for seconds, doing in enumerate(("Ray starts", "Ray starts", "the first step runs", "")):
        view.update(replace(snapshot, now=snapshot.now + seconds, doing=doing))
    said = [line[8:].strip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert [line for line in said if "cost" not in line] == ["Ray starts", "the first step runs"]


def test_plain_lines_report_why_a_job_on_a_cluster_waits(run: PlayedRun) -> None:
    out = io.StringIO()
    view = PlainView(Console(file=out, width=80))
    snapshot, _ = at(run, 1)
    view.update(replace(snapshot, waits=WAITS))
    assert f"Pending on spot-a, {WAITS}, nothing committed yet" in out.getvalue()
