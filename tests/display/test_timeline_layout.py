"""The layout of the timeline, which all of its drawings share."""

from __future__ import annotations

from dataclasses import replace

from spotladder.display.report.facts import Facts
from spotladder.display.report.timeline_layout import BarKind, MarkKind, timeline_layout


def test_each_attempt_is_a_row_of_bars_on_the_lane_of_its_tier(digits: Facts) -> None:
    layout = timeline_layout(digits, 1000)
    assert layout.tiers == ("spot-a", "spot-b", "on-demand")
    assert [(bars.number, bars.lane, bars.works) for bars in layout.attempts] == [
        (1, 0, True),
        (2, 0, True),
        (3, 1, False),
        (4, 2, True),
    ]
    first = digits.attempts[0]
    kinds = [bar.kind for bar in layout.attempts[0].bars]
    assert kinds == [BarKind.WAITING] + [BarKind.READY] * len(first.all_ready) + [BarKind.WORK] * len(first.work)


def test_a_move_to_another_tier_is_a_change_of_lanes(digits: Facts) -> None:
    layout = timeline_layout(digits, 1000)
    ends = [attempt.end for attempt in digits.attempts]
    assert [(change.at, change.before, change.after) for change in layout.changes] == [(ends[1], 0, 1), (ends[2], 1, 2)]


def test_a_number_without_room_is_left_out(digits: Facts) -> None:
    wide, narrow = timeline_layout(digits, 1000), timeline_layout(digits, 60)
    assert [bars.number for bars in wide.attempts if bars.number_at is not None] == [1, 2, 3, 4]
    assert [bars.number for bars in narrow.attempts if bars.number_at is not None] == [4]


def test_marks_that_would_overlap_are_one_except_commits(digits: Facts) -> None:
    first = digits.evictions[0]
    twice = replace(digits, evictions=(*digits.evictions, replace(first, what="another", at=first.at + 0.1)))
    layout = timeline_layout(twice, 1000)
    marks = {kind: [mark for mark in layout.marks if mark.kind is kind] for kind in MarkKind}
    assert [mark.number for mark in marks[MarkKind.FAILURE]] == [2, *[1] * (len(digits.evictions) - 1)]
    assert "lost another" in marks[MarkKind.FAILURE][0].text
    assert len(marks[MarkKind.COMMIT]) == len(digits.commits)


def test_events_on_a_tier_that_the_spec_no_longer_has_are_left_out(digits: Facts) -> None:
    spec = replace(digits.spec, tiers=digits.spec.tiers[:1])
    layout = timeline_layout(replace(digits, spec=spec), 1000)
    assert {bars.lane for bars in layout.attempts} == {0}
    assert {mark.lane for mark in layout.marks} == {0}
    assert (layout.changes, layout.dry) == ((), ())


def test_a_long_curve_is_thinned_and_keeps_its_drops(digits: Facts) -> None:
    steps = [(float(at), at if at < 4001 else at - 700) for at in range(9000)]
    layout = timeline_layout(replace(digits, progress=tuple(steps)), 1000)
    assert len(layout.progress) < 510
    assert {steps[0], steps[4000], steps[4001], steps[-1]} <= set(layout.progress)
    assert timeline_layout(replace(digits, progress=()), 1000).progress == ()
