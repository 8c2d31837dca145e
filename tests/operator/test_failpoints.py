"""The failpoints of the controller: which text arms them, and what each action does."""

from __future__ import annotations

import os
import signal

import pytest

from spotladder.errors import EnvironmentFailure
from tests.operator import failpoints
from tests.operator.failpoints import CRASHED, FailPoint, Point, reach


def armed(text: str) -> dict[str, tuple[str, int]]:
    return {name: (found.action, found.turn) for name, found in failpoints._armed(text).items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" , ", {}),
        ("after-launch:crash", {"after-launch": ("crash", 1)}),
        ("after-launch:stop@2", {"after-launch": ("stop", 2)}),
        (
            "before-status:error@12, after-load:crash",
            {"before-status": ("error", 12), "after-load": ("crash", 1)},
        ),
    ],
)
def test_failpoints_are_separated_by_commas_and_act_the_first_time_by_default(
    text: str, expected: dict[str, tuple[str, int]]
) -> None:
    assert armed(text) == expected


@pytest.mark.parametrize("text", ["after-lunch:crash", "after-launch", "after-launch:burn", "after-launch:crash@x"])
def test_a_misspelled_failpoint_is_rejected_with_all_names(text: str) -> None:
    with pytest.raises(EnvironmentFailure) as found:
        armed(f"after-load:crash,{text}")
    says = f"SPOTLADDER_FAILPOINTS: {text!r} is not NAME:crash|stop|error[@TURN]; names are after-load, after-decide, "
    assert str(found.value).startswith(says)
    assert str(found.value).endswith(", before-release")


def test_a_failpoint_acts_only_at_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "_points", failpoints._armed("after-launch:error@2"))
    reach(Point.AFTER_LAUNCH)
    reach(Point.AFTER_LOAD)
    with pytest.raises(FailPoint, match=r"^SPOTLADDER_FAILPOINTS: after-launch$"):
        reach(Point.AFTER_LAUNCH)
    reach(Point.AFTER_LAUNCH)


def test_crash_ends_the_process_at_once_and_stop_suspends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []

    def exits(code: int) -> None:
        calls.append(("exit", code))
        raise SystemExit

    monkeypatch.setattr(os, "_exit", exits)
    monkeypatch.setattr(os, "kill", lambda *given: calls.append(given))
    monkeypatch.setattr(failpoints, "_points", failpoints._armed("after-launch:crash,after-load:stop"))
    reach(Point.AFTER_LOAD)
    with pytest.raises(SystemExit):
        reach(Point.AFTER_LAUNCH)
    assert calls == [(os.getpid(), signal.SIGSTOP), ("exit", CRASHED)]
