"""What a person sees while a job runs, on terminals of any size and off them."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from spotladder.core.impediment import RULES
from spotladder.core.model import (
    FOR_EVER,
    Attempt,
    AttemptSeen,
    JobState,
    Loss,
    Move,
    Observation,
    PodPhase,
    PodSeen,
    Progress,
    Stage,
    TierRecord,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.core.transitions import TRANSITIONS
from spotladder.display.figures import clock, count, measure, money, percent, rate, saved, span
from spotladder.display.narrate import Tone, tell
from spotladder.display.picture import draw, tier_state
from spotladder.display.timeline import (
    Beat,
    Began,
    Billed,
    Committed,
    DriverExited,
    Ended,
    Launched,
    Lost,
    Moved,
    NodeChange,
    NodeChanged,
    Noted,
    PoolChanged,
    Record,
)
from spotladder.display.view import LiveView, PlainView, view_on
from spotladder.display.view_state import RunSummary, ViewSnapshot
from tests.core.builders import START
from tests.display import golden
from tests.display.builders import SPEC, Run


@pytest.fixture(scope="module")
def run() -> Run:
    return Run().play()


def at(run: Run, second: int) -> tuple[ViewSnapshot, RunSummary]:
    snapshot = next(shot for shot in run.shots if shot.now == START + second)
    summary = RunSummary()
    for record in run.records:
        if record.at <= snapshot.now:
            summary.add(record)
    return snapshot, summary


def drawn(snapshot: ViewSnapshot, summary: RunSummary, width: int = 80, height: int = 24) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=True, color_system=None)
    console.print(draw(snapshot, summary, width, height))
    return out.getvalue().splitlines()


# --- the picture -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "second", "width", "height"),
    [
        ("running", 20, 80, 24),
        ("noticed", 31, 80, 24),
        ("dry", 64, 80, 24),
        ("done", 123, 100, 30),
        ("narrow", 64, 44, 18),
    ],
)
def test_the_picture_is_golden(run: Run, name: str, second: int, width: int, height: int) -> None:
    lines = [line.rstrip() for line in drawn(*at(run, second), width, height)]
    golden.check(f"view-{name}.txt", "\n".join(lines) + "\n")


@settings(max_examples=150, deadline=None)
@given(second=st.integers(0, 123), width=st.integers(20, 200), height=st.integers(4, 60))
def test_no_line_is_wider_than_the_terminal_and_the_picture_never_scrolls_it(
    second: int, width: int, height: int
) -> None:
    lines = drawn(*at(STORY, second), width, height)
    assert max(cell_len(line) for line in lines) <= width
    assert len(lines) < height
    assert "0:0" in lines[0]
    if height > 2 + len(SPEC.tiers):
        assert any("spot-a" in line for line in lines), "the tiers are the last to be left out"


STORY = Run().play()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (60, 20)])
def test_the_picture_keeps_its_height_so_that_nothing_jumps(run: Run, width: int, height: int) -> None:
    heights = {len(drawn(*at(run, second), width, height)) for second in range(124)}
    assert len(heights) == 1


def test_everything_a_person_asks_for_is_there(run: Run) -> None:
    text = "\n".join(drawn(*at(run, 20)))
    for wanted in ("team-a/digits", "Running", "0:00:20", "70/400", "18\u202f%", "5.0 steps/s", "1m 06s left"):
        assert wanted in text
    for wanted in ("loss 1.361", "committed step 50, 4s ago", "spot-a-1-1", "$0.0040 spent", "70\u202f% saved", "0/1"):
        assert wanted in text
    assert "committed step 50, loss 1.589" in text
    assert "Ctrl-C drains and commits" in text


def seen(*pods: PodSeen, **more: object) -> Observation:
    return Observation(1, (AttemptSeen(1, pods, **more),))  # type: ignore[arg-type]


LIVE = Attempt(1, "spot-a", START)
TIER = SPEC.tiers[0]
NODE = PodSeen("n1", node="n1")


@pytest.mark.parametrize(
    ("state", "observation", "expected"),
    [
        pytest.param(JobState(), Observation(0), (Tone.QUIET, "open"), id="nothing yet"),
        pytest.param(
            JobState(stage=Stage.STARTING, attempt=LIVE, tier="spot-a", waiting_since=START - 10),
            seen(NODE, PodSeen("n2", phase=PodPhase.PENDING)),
            (Tone.CAUTION, "starting, 1/2 up, leaves in 20s"),
            id="starting",
        ),
        pytest.param(
            JobState(stage=Stage.STARTING, attempt=LIVE, tier="spot-a", waiting_since=START),
            seen(blocked="no such image"),
            (Tone.BAD, "blocked: no such image"),
            id="blocked",
        ),
        pytest.param(
            JobState(stage=Stage.STARTING, attempt=LIVE, tier="spot-a", waiting_since=START),
            Observation(0, blocked="no right to create it"),
            (Tone.BAD, "blocked: no right to create it"),
            id="cannot be launched",
        ),
        pytest.param(
            JobState(stage=Stage.RUNNING, attempt=LIVE, tier="spot-a"), seen(NODE), (Tone.GOOD, "running"), id="running"
        ),
        pytest.param(
            JobState(stage=Stage.RUNNING, attempt=LIVE, tier="spot-a"),
            seen(replace(NODE, noticed=True, notice_ends_at=START + 5)),
            (Tone.GOOD, "running, a node goes in 5s"),
            id="noticed",
        ),
        pytest.param(
            JobState(stage=Stage.RECOVERING, attempt=LIVE, tier="spot-a", recovering_since=START - 5),
            seen(NODE),
            (Tone.CAUTION, "recovering, 1/2 up, new attempt in 10s"),
            id="recovering",
        ),
        pytest.param(
            JobState(stage=Stage.DRAINING, attempt=replace(LIVE, drain_by=START + 7), tier="spot-a"),
            seen(NODE),
            (Tone.CAUTION, "draining, cut in 7s"),
            id="draining",
        ),
        pytest.param(
            JobState(stage=Stage.DRAINING, attempt=replace(LIVE, drain_by=START - 7), tier="spot-a"),
            seen(NODE),
            (Tone.CAUTION, "draining, cut in 0s"),
            id="a countdown never falls below zero",
        ),
        pytest.param(
            JobState(stage=Stage.ENDING, attempt=LIVE, tier="spot-a"),
            seen(NODE),
            (Tone.CAUTION, "ending attempt 1"),
            id="ending",
        ),
        pytest.param(
            JobState(stage=Stage.IDLE, tier="spot-a", paused_until=START + 60),
            Observation(0),
            (Tone.CAUTION, "pausing, begins again in 1m 00s"),
            id="pausing",
        ),
        pytest.param(
            JobState(stage=Stage.SUSPENDED, tier="spot-a"), Observation(0), (Tone.QUIET, "suspended"), id="suspended"
        ),
        pytest.param(
            JobState(tier="b", tiers=(TierRecord("spot-a", 2, exhausted_by=Reason.MAX_FAILURES_EXCEEDED),)),
            Observation(0),
            (Tone.CAUTION, "left: MaxFailuresExceeded"),
            id="spent",
        ),
        pytest.param(
            JobState(tier="b"),
            Observation(0, unavailable={"spot-a": "its cluster is unreachable"}),
            (Tone.CAUTION, "unavailable: its cluster is unreachable"),
            id="unavailable",
        ),
        pytest.param(
            JobState(stage=Stage.SUCCEEDED, tier="spot-a"), Observation(0), (Tone.GOOD, "finished here"), id="finished"
        ),
        pytest.param(
            JobState(stage=Stage.FAILED, tier="spot-a", reason=Reason.APPLICATION_FAILED),
            Observation(0),
            (Tone.BAD, "ended here: ApplicationFailed"),
            id="failed",
        ),
    ],
)
def test_a_tier_says_what_it_is_up_to_and_how_long(
    state: JobState, observation: Observation, expected: tuple[Tone, str]
) -> None:
    assert tier_state(ViewSnapshot(START, SPEC, state, observation), TIER) == expected


def test_many_nodes_are_counted_not_listed() -> None:
    pods = [PodSeen(f"n{index}", node=f"node-{index}") for index in range(64)]
    pods[0] = replace(pods[0], noticed=True)
    pods[1] = replace(pods[1], phase=PodPhase.PENDING)
    pods[2] = replace(pods[2], phase=PodPhase.LOST)
    state = JobState(stage=Stage.RUNNING, attempt=LIVE, tier="spot-a")
    text = "\n".join(drawn(ViewSnapshot(START, SPEC, state, seen(*pods)), RunSummary()))
    assert "● 61 up  ◐ 1 noticed  ○ 1 wanted" in text
    assert "node-5" not in text


def test_a_tier_kept_for_ever_shows_no_limit() -> None:
    spec = replace(SPEC, tiers=(replace(TIER, max_failures=FOR_EVER),))
    assert "0/∞" in "\n".join(drawn(ViewSnapshot(START, spec, JobState(), Observation(0)), RunSummary()))


def test_without_prices_or_steps_the_picture_claims_nothing() -> None:
    text = "\n".join(drawn(ViewSnapshot(START, SPEC, JobState(), Observation(0)), RunSummary()))
    assert "saved" not in text
    assert "step 0" in text
    assert "nothing committed yet" in text


def test_hostile_names_are_shown_as_they_are() -> None:
    spec = replace(SPEC, tiers=(replace(TIER, name="[bold red]x[/]"),))
    summary = RunSummary()
    summary.add(Began(START, "[link=evil]j[/]", "n", spec))
    summary.add(Noted(START, "[blink]boo[/]"))
    text = "\n".join(drawn(ViewSnapshot(START, spec, JobState(), Observation(0)), summary, 100))
    for name in ("[bold red]x[/]", "n/[link=evil]j[/]", "[blink]boo[/]"):
        assert name in text


# --- how far and how fast --------------------------------------------------------------------------------------------


def test_the_pace_is_that_of_the_last_seconds_of_this_life_of_the_program() -> None:
    summary = RunSummary()
    for second in range(100):
        summary.add(Beat(START + second, 1, second * (2 if second < 50 else 1) + (50 if second >= 50 else 0)))
    assert summary.pace(START + 99) == pytest.approx(1.0)
    assert summary.pace(START + 200) is None, "no heartbeat within the window"
    summary.add(Beat(START + 100, 2, 3))
    assert summary.pace(START + 100) is None, "a new attempt has no pace yet"


def test_the_step_is_the_programs_word_while_it_runs_else_the_newest_commits() -> None:
    summary = RunSummary()
    summary.add(Beat(START, 1, 70, 400))
    progress = Observation(1, (), Progress(50, 400, START, 1))
    assert summary.step(ViewSnapshot(START, SPEC, JobState(attempt=LIVE), progress)) == 70
    assert summary.step(ViewSnapshot(START, SPEC, JobState(attempt=replace(LIVE, number=2)), progress)) == 50


# --- plain lines -----------------------------------------------------------------------------------------------------


def plainly(run: Run, history: int = 0) -> list[str]:
    out = io.StringIO()
    with PlainView(Console(file=out, width=40), run.records[:history]) as view:
        shots = iter(run.shots)
        for record in run.records[history:]:
            view.tell(record)
            if isinstance(record, Billed):
                view.update(next(shots))
    return out.getvalue().splitlines()


def test_plain_lines_are_golden(run: Run) -> None:
    golden.check("view-plain.txt", "\n".join(plainly(run)) + "\n")


def test_plain_lines_have_no_colour_and_no_wrapping(run: Run) -> None:
    lines = plainly(run)
    assert not any("\x1b" in line for line in lines)
    assert all(line[:7].count(":") == 2 for line in lines), "each line is one event with its time"


def test_plain_lines_say_progress_only_now_and_then(run: Run) -> None:
    progress = [line for line in plainly(run) if "cost $" in line]
    assert 10 <= len(progress) <= 14
    assert "Running on spot-a, step 70/400" in "".join(progress)


def test_what_happened_before_a_resume_is_known_but_not_told_again(run: Run) -> None:
    assert len(plainly(run, history=60)) < len(plainly(run))
    assert not any("begins" in line for line in plainly(run, history=60))


# --- which view ------------------------------------------------------------------------------------------------------


def test_a_terminal_gets_the_live_view_anything_else_plain_lines() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80, height=24)
    assert isinstance(view_on(terminal).view, LiveView)
    assert isinstance(view_on(Console(file=io.StringIO())).view, PlainView)
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(view_on(dumb).view, PlainView)


class Closed(io.StringIO):
    """A terminal that was closed after so many writes."""

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
def test_a_run_outlives_its_terminal(run: Run, writes: int, terminal: bool) -> None:
    out = Closed(writes)
    with view_on(Console(file=out, force_terminal=terminal, width=80, height=24)) as view:
        for record, shot in zip(run.records, run.shots, strict=False):
            view.tell(record)
            view.update(shot)
    assert out.left < 0, "something was refused"


PIPED = """
import sys
from rich.console import Console
from spotladder.display.timeline import Noted
from spotladder.display.view import view_on
with view_on(Console()) as view:
    for number in range(100_000):
        view.tell(Noted(float(number), "x" * 50))
sys.stderr.write("went on to its end")
"""


def test_a_run_outlives_the_reader_of_its_lines() -> None:
    piped = subprocess.Popen([sys.executable, "-c", PIPED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert piped.stdout is not None
    assert piped.stderr is not None
    try:
        piped.stdout.readline()
        piped.stdout.close()
        assert piped.stderr.read() == "went on to its end"
    finally:
        piped.kill()
        piped.wait()
        piped.stderr.close()


def test_the_live_view_draws_in_place_and_leaves_its_last_picture(run: Run) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=24, color_system=None)
    with LiveView(console) as view:
        for record in run.records:
            view.tell(record)
        for shot in run.shots:
            view.update(shot)
    written = out.getvalue()
    last = written[written.rindex("team-a/digits") :]
    assert "Succeeded" in last
    assert "400/400" in last
    assert written.rstrip("\n").endswith("\x1b[?25h"), "the cursor is shown again"


def test_after_a_resize_the_screen_is_cleared_and_the_picture_fits(run: Run) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=24, color_system=None)
    with LiveView(console) as view:
        for record in run.records:
            view.tell(record)
        view.update(run.shots[20])
        before = len(out.getvalue())
        console.size = (50, 20)  # type: ignore[assignment]
        view.update(run.shots[21])
        after = out.getvalue()[before:]
    assert "\x1b[2J" in after
    assert max(cell_len(line) for line in after.split("\x1b[2J")[1].splitlines() if "\x1b" not in line) <= 50


# --- sentences -------------------------------------------------------------------------------------------------------


def moved(reason: Reason, target: Stage, message: str = "", source: Stage = Stage.RUNNING) -> Moved:
    return Moved(START, Move(source, target, reason, 2, "spot-a", message))


ALONE = replace(SPEC, workers=1)
KILLED = Loss("w1", Cause.OOM_KILLED, 2, "spot-a")
NOTICED = NodeChanged(START, "w1", 2, "spot-a", NodeChange.NOTICED, Cause.INTERRUPTION, START + 5)


@pytest.mark.parametrize(
    ("record", "tone", "text"),
    [
        (Began(START, "j", "n", SPEC), Tone.QUIET, "j begins: 2 workers on spot-a → spot-b → on-demand"),
        (Began(START, "j", "n", ALONE, True), Tone.QUIET, "j goes on: 1 worker on spot-a → spot-b → on-demand"),
        (moved(Reason.STARTED, Stage.STARTING, "attempt 2 on spot-a"), Tone.QUIET, "starts: attempt 2 on spot-a"),
        (moved(Reason.WHOLE, Stage.RUNNING), Tone.GOOD, "attempt 2 is whole"),
        (moved(Reason.EVICTION_NOTICE, Stage.DRAINING), Tone.CAUTION, "attempt 2 drains: EvictionNotice"),
        (moved(Reason.STALLED, Stage.ENDING, "no commit"), Tone.BAD, "attempt 2 ends: Stalled – no commit"),
        (moved(Reason.INSUFFICIENT_CAPACITY, Stage.ENDING), Tone.BAD, "leaves spot-a: InsufficientCapacity"),
        (moved(Reason.COMPLETED, Stage.SUCCEEDED), Tone.GOOD, "job Succeeded: Completed"),
        (moved(Reason.DEADLINE_EXCEEDED, Stage.DRAINING), Tone.BAD, "attempt 2 drains: DeadlineExceeded"),
        (Lost(START, KILLED, 1), Tone.BAD, "lost w1 (OOMKilled), failure 1 on spot-a (1 tolerated)"),
        (NOTICED, Tone.CAUTION, "w1 will be taken away in 5s (Interruption)"),
        (PoolChanged(START, "spot-b", False), Tone.CAUTION, "spot-b has no capacity"),
        (PoolChanged(START, "spot-b", True), Tone.QUIET, "spot-b has capacity again"),
        (Committed(START, 2, "a", 1234, 0, {"loss": 0.12345}), Tone.GOOD, "committed step 1\u202f234, loss 0.1235"),
        (DriverExited(START, 2, 75), Tone.QUIET, "attempt 2 has stopped, to be resumed (exit code 75)"),
        (DriverExited(START, 2, 76), Tone.CAUTION, "attempt 2 was fenced: a newer one owns the job"),
        (Noted(START, "stepped back"), Tone.CAUTION, "stepped back"),
        (Ended(START, 0, Reason.COMPLETED), Tone.GOOD, "done"),
        (Ended(START, 75, Reason.INTERRUPTED), Tone.CAUTION, "stopped, to be resumed"),
        (Ended(START, 5, Reason.INTERRUPTED, "the disk is full"), Tone.BAD, "stopped, to be resumed: the disk is full"),
        (Ended(START, 3, Reason.TIERS_EXHAUSTED, "all spent"), Tone.BAD, "failed: TiersExhausted: all spent"),
    ],
)
def test_a_record_in_a_sentence(record: Record, tone: Tone, text: str) -> None:
    told = tell(record, SPEC)
    assert told is not None
    assert (told.tone, told.text) == (tone, text)


@pytest.mark.parametrize(
    "record",
    [
        Launched(START, 1, "a"),
        Beat(START, 1, 1),
        Billed(START, 1.0, 1.0),
        NodeChanged(START, "w1", 1, "a", NodeChange.UP),
        DriverExited(START, 1, 0),
        DriverExited(START, 1, None),
        moved(Reason.GONE, Stage.IDLE, source=Stage.ENDING),
        moved(Reason.DRAINED, Stage.ENDING, source=Stage.DRAINING),
    ],
)
def test_what_others_say_already_is_not_said(record: Record) -> None:
    assert tell(record, SPEC) is None


SILENT = {
    Reason.DRAINED,
    Reason.GONE,
    *(rule.reason for rule in RULES if not any(rule.reason in row for row in TRANSITIONS.values())),
    Reason.STEADY,
    Reason.STALE_OBSERVATION,
}


@pytest.mark.parametrize("reason", sorted(set(Reason) - SILENT))
def test_every_reason_for_a_move_has_a_sentence(reason: Reason) -> None:
    assert tell(moved(reason, Stage.ENDING), SPEC) is not None


# --- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (span(0), "0s"),
        (span(-3), "0s"),
        (span(59.6), "1m 00s"),
        (span(83), "1m 23s"),
        (span(7500), "2h 05m"),
        (span(300_000), "3d 11h"),
        (span(None), "–"),
        (span(float("inf")), "–"),
        (clock(83), "0:01:23"),
        (clock(36_000), "10:00:00"),
        (money(0.0123), "$0.0123"),
        (money(0.0123, 250.0), "$0.01"),
        (money(1234.5), "$1,234.50"),
        (money(-0.5), "-$0.5000"),
        (money(None), "–"),
        (count(1_234_567), "1\u202f234\u202f567"),
        (percent(0.448, 1), "44.8\u202f%"),
        (percent(-0.5), "−50\u202f%"),
        (percent(-0.001), "0\u202f%"),
        (percent(None), "–"),
        (rate(None), "–"),
        (rate(250.0), "250 steps/s"),
        (rate(5.04), "5.0 steps/s"),
        (rate(0.1), "6.0 steps/min"),
        (measure(1234.5678), "1235"),
        (saved(1.0, 4.0), 0.75),
        (saved(1.0, 0.0), None),
    ],
)
def test_numbers_are_written_for_people(written: object, expected: object) -> None:
    assert written == expected


def test_why_a_job_failed_is_told_once() -> None:
    why = "exit code 1: ValueError: no data (train.py:5)"
    move = Move(Stage.RUNNING, Stage.FAILED, Reason.APPLICATION_FAILED, 1, "spot-a", why)
    summary = RunSummary()
    summary.add(Moved(START, move))
    summary.add(Ended(START, 1, Reason.APPLICATION_FAILED, why))
    assert [told.text for told in summary.events] == [
        f"job Failed: ApplicationFailed – {why}",
        "failed: ApplicationFailed",
    ]
    summary.add(Ended(START, 5, Reason.INTERRUPTED, "the disk is full"))
    assert summary.events[-1].text == "stopped, to be resumed: the disk is full"


def test_plain_lines_say_what_a_start_is_at_when_it_changes(run: Run) -> None:
    console = Console(file=io.StringIO(), width=100)
    view = PlainView(console)
    shown = run.shots[0]
    for seconds, doing in enumerate(("Ray starts", "Ray starts", "the first step runs", "")):
        view.update(replace(shown, now=shown.now + seconds, doing=doing))
    said = [line[8:].strip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert [line for line in said if "cost" not in line] == ["Ray starts", "the first step runs"]


def test_the_picture_says_what_a_start_is_at() -> None:
    shot = ViewSnapshot(START, SPEC, JobState(), Observation(0), doing="the first step runs")
    assert "the first step runs · nothing committed yet" in "\n".join(drawn(shot, RunSummary()))


WAITS = (
    "pods wait for nodes and images: 0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint "
    "(for 5m 50s; provisionTimeout in 4m 10s: the tier is left)"
)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_picture_says_what_a_job_on_a_cluster_waits_for(run: Run, width: int) -> None:
    snapshot, summary = at(run, 1)
    lines = drawn(replace(snapshot, waits=WAITS), summary, width, 30)
    assert WAITS.replace(" ", "") in "".join(line.strip() for line in lines).replace(" ", "")
    assert all(cell_len(line) <= width for line in lines)


def test_plain_lines_say_what_a_job_on_a_cluster_waits_for(run: Run) -> None:
    out = io.StringIO()
    view = PlainView(Console(file=out, width=80))
    snapshot, _ = at(run, 1)
    view.update(replace(snapshot, waits=WAITS))
    assert f"Pending on spot-a, {WAITS}, step 0" in out.getvalue()
