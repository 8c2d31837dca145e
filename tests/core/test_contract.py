"""The contract between a controller and the program of an attempt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.core.attempt_program import launch_variables
from spotladder.core.contract import Notice, NoticeKind
from spotladder.core.model import Exit, Launch
from spotladder.core.reasons import Reason


@given(st.sampled_from(Reason), st.floats(min_value=0, max_value=1e11))
def test_the_program_reads_the_notice_that_the_controller_writes(reason: Reason, deadline: float) -> None:
    notice = Notice.of(reason, deadline)
    assert Notice.decode(notice.encode()) == notice
    assert notice.deadline == pytest.approx(deadline, abs=0.001)


def test_a_notice_without_fields_asks_the_program_to_stop_for_an_eviction() -> None:
    notice = Notice.decode("{}")
    assert notice == Notice(NoticeKind.NOTICE.value, Reason.EVICTION_NOTICE.value, None)
    assert notice.encode() == '{"kind":"notice","deadline":null,"reason":"EvictionNotice"}'


@pytest.mark.parametrize("reason", Reason)
def test_only_an_eviction_is_announced_as_a_notice(reason: Reason) -> None:
    expected = NoticeKind.NOTICE if reason is Reason.EVICTION_NOTICE else NoticeKind.DRAIN
    assert Notice.of(reason, 0).kind == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stop",
        "[" * 100_000,
        "[]",
        "7",
        '{"deadline": "soon"}',
        '{"deadline": []}',
        '{"deadline": 1' + "0" * 400 + "}",
    ],
)
def test_invalid_text_is_rejected_as_a_notice(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Notice.decode(text)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0, Exit.SUCCEEDED),
        (75, Exit.INTERRUPTED),
        (76, Exit.FENCED),
        (77, Exit.REFUSED),
        (78, Exit.UNSAFE),
        (1, Exit.FAILED),
        (-11, Exit.FAILED),
        (255, Exit.FAILED),
    ],
)
def test_each_exit_code_maps_to_its_outcome(code: int, expected: Exit) -> None:
    assert Exit.of_code(code) is expected


def test_a_handover_is_a_notice_of_another_kind_with_the_time_of_the_eviction() -> None:
    assert Notice.of_handover(12.34567) == Notice("handover", "EvictionNotice", 12.346)


def test_the_notice_that_lets_a_standby_program_start_has_no_deadline() -> None:
    assert Notice.of_takeover() == Notice("takeover", "Relieved", None)


def test_a_request_to_commit_has_its_own_time() -> None:
    request = Notice.of_commit(Reason.MAINTENANCE, 12.34567)
    assert request == Notice("commit", "Maintenance", 12.346)
    assert Notice.decode(request.encode()) == request


@pytest.mark.parametrize(
    ("launch", "variables"),
    [
        (Launch(1, "spot-a"), {}),
        (Launch(1, "spot-a", standby=True), {"SPOTLADDER_STANDBY": "true"}),
        (Launch(3, "spot-a", hangs=2), {"SPOTLADDER_HANGS": "2"}),
    ],
    ids=["usual", "standby", "after two hangs"],
)
def test_the_variables_of_a_program_name_only_what_is_special_about_its_launch(
    launch: Launch, variables: dict[str, str]
) -> None:
    assert launch_variables(launch) == variables
