"""The picture of a job on terminals of any size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from spotladder.core.model import (
    AttemptSeen,
    Ending,
    JobState,
    LeftAttempt,
    Observation,
    PodPhase,
    PodSeen,
    Stage,
    TierRecord,
)
from spotladder.core.reasons import Reason
from spotladder.display.narrate import Tone
from spotladder.display.picture import tier_state
from spotladder.display.view_state import RunSummary, ViewSnapshot
from spotladder.records.model import Began, Noted
from tests import golden
from tests.core.builders import START
from tests.display.builders import LIVE, SPEC, PlayedRun
from tests.display.drawing import WAITS, at, drawn
from tests.searching import examples


@pytest.mark.parametrize(
    ("name", "second", "width", "height"),
    [
        ("running", 20, 80, 24),
        ("noticed", 31, 80, 24),
        ("dry", 64, 80, 24),
        ("done", 121, 100, 30),
        ("narrow", 64, 44, 18),
    ],
)
def test_the_picture_matches_the_golden_file(run: PlayedRun, name: str, second: int, width: int, height: int) -> None:
    lines = [line.rstrip() for line in drawn(*at(run, second), width, height)]
    golden.check(f"display/golden/view-{name}.txt", "\n".join(lines) + "\n")


@settings(max_examples=examples(150), deadline=None)
@given(second=st.integers(0, 121), width=st.integers(20, 200), height=st.integers(15, 60))
def test_the_picture_fits_the_terminal(run: PlayedRun, second: int, width: int, height: int) -> None:
    lines = drawn(*at(run, second), width, height)
    assert max(cell_len(line) for line in lines) <= width
    assert len(lines) < height
    assert "0:0" in lines[0]
    assert any("spot-a" in line for line in lines)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (60, 20)])
def test_the_picture_has_the_same_height_throughout_the_run(run: PlayedRun, width: int, height: int) -> None:
    heights = {len(drawn(*at(run, second), width, height)) for second in range(0, 122, 5)}
    assert len(heights) == 1


def seen(*pods: PodSeen, **more: object) -> Observation:
    return Observation(1, (AttemptSeen(1, pods, **more),))  # type: ignore[arg-type]


TIER = SPEC.tiers[0]


NODE = PodSeen("n1", node="n1")


def on_spot(stage: Stage, **more: Any) -> JobState:
    return JobState(stage=stage, attempt=replace(LIVE, **more), tier="spot-a")


def draining(by: float) -> JobState:
    return on_spot(Stage.DRAINING, ending=Ending(drain_by=by))


@pytest.mark.parametrize(
    ("state", "observation", "expected"),
    [
        (JobState(), Observation(0), (Tone.QUIET, "open")),
        (
            on_spot(Stage.STARTING),
            seen(NODE, PodSeen("n2", phase=PodPhase.PENDING)),
            (Tone.CAUTION, "starting, 1/2 up"),
        ),
        (on_spot(Stage.RUNNING), seen(NODE), (Tone.GOOD, "running")),
        (on_spot(Stage.RUNNING), seen(NODE, size=1), (Tone.GOOD, f"running with 1 of {SPEC.workers} workers")),
        (on_spot(Stage.RECOVERING), seen(NODE), (Tone.CAUTION, "recovering, 1/2 up")),
        (
            on_spot(Stage.DRAINING, ending=Ending(drain_by=START + 7)),
            seen(NODE),
            (Tone.CAUTION, "draining, killed in 7s"),
        ),
        (
            on_spot(Stage.DRAINING, ending=Ending(drain_by=START - 7)),
            seen(NODE),
            (Tone.CAUTION, "draining, killed in 0s"),
        ),
        (on_spot(Stage.ENDING), seen(NODE), (Tone.CAUTION, "ending")),
        (JobState(stage=Stage.SUSPENDED, tier="spot-a"), Observation(0), (Tone.QUIET, "suspended")),
        (
            JobState(tier="b", tiers=(TierRecord("spot-a", 2, exhausted_by=Reason.MAX_FAILURES_EXCEEDED),)),
            Observation(0),
            (Tone.CAUTION, "left: MaxFailuresExceeded"),
        ),
        (
            JobState(tier="b", left=(LeftAttempt(3, "spot-a", START - 5, 2), LeftAttempt(4, "b", START))),
            Observation(0),
            (Tone.QUIET, "open; attempt 3 on spot-a is being removed (5s, 2 nodes)"),
        ),
        (
            JobState(tier="b"),
            Observation(0, unavailable={"spot-a": "its cluster is unreachable"}),
            (Tone.CAUTION, "unavailable: its cluster is unreachable"),
        ),
        (JobState(stage=Stage.SUCCEEDED, tier="spot-a"), Observation(0), (Tone.GOOD, "finished here")),
        (
            JobState(stage=Stage.FAILED, tier="spot-a", reason=Reason.APPLICATION_FAILED),
            Observation(0),
            (Tone.BAD, "ended here: ApplicationFailed"),
        ),
    ],
    ids=lambda case: case[1] if isinstance(case, tuple) else "",
)
def test_each_tier_shows_its_state(state: JobState, observation: Observation, expected: tuple[Tone, str]) -> None:
    assert tier_state(ViewSnapshot(START, SPEC, state, observation), TIER) == expected


def test_many_nodes_are_shown_as_counts() -> None:
    pods = [PodSeen(f"n{index}", node=f"node-{index}") for index in range(64)]
    pods[0] = replace(pods[0], noticed=True)
    pods[1] = replace(pods[1], phase=PodPhase.PENDING)
    pods[2] = replace(pods[2], phase=PodPhase.LOST)
    state = JobState(stage=Stage.RUNNING, attempt=LIVE, tier="spot-a")
    text = "\n".join(drawn(ViewSnapshot(START, SPEC, state, seen(*pods)), RunSummary()))
    assert "● 61 up  ◐ 1 noticed  ○ 1 wanted" in text
    assert "node-5" not in text


def test_markup_in_names_is_shown_literally() -> None:
    spec = replace(SPEC, tiers=(replace(TIER, name="[bold red]x[/]"),))
    summary = RunSummary()
    summary.add(Began(START, "[link=evil]j[/]", "n", spec))
    summary.add(Noted(START, "[blink]boo[/]"))
    text = "\n".join(drawn(ViewSnapshot(START, spec, JobState(), Observation(0)), summary, 100))
    for name in ("[bold red]x[/]", "n/[link=evil]j[/]", "[blink]boo[/]"):
        assert name in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_picture_shows_why_a_job_on_a_cluster_waits(run: PlayedRun, width: int) -> None:
    snapshot, summary = at(run, 1)
    lines = drawn(replace(snapshot, waits=WAITS), summary, width, 30)
    assert WAITS.replace(" ", "") in "".join(line.strip() for line in lines).replace(" ", "")
    assert all(cell_len(line) <= width for line in lines)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 24), (80, 2)])
def test_a_tiny_terminal_does_not_end_the_run(run: PlayedRun, width: int, height: int) -> None:
    snapshot, summary = at(run, 20)
    drawn(replace(snapshot, waits=WAITS), summary, width, height)
