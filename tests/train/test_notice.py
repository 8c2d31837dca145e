"""The sources of notices: a file, Ray."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.core.contract import Notice
from spotladder.core.reasons import Reason
from spotladder.train.notice import (
    CONTROLLER_GRACE_PERIOD,
    Listener,
    NoticeFile,
    RayPreemption,
    read_notice,
)
from tests.train.builders import ManualClock


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("", None),
        (" \n", None),
        ('{"kind": "drain", "reason": "Policy", "deadline": 12.5}', Notice("drain", "Policy", 12.5)),
        ('{"kind": "notice"}', Notice("notice", "EvictionNotice")),
        ('{"kind": "takeover"}', None),
        ('{"kind": "commit", "deadline": 3}', Notice("commit", "EvictionNotice", 3.0)),
        ('{"kind": "drain", "reason": "Policy", "deadline": null}', Notice("drain", "Policy")),
        ('{"kind": "drain", "more": 1}', Notice("drain", "EvictionNotice")),
    ],
)
def test_notices_are_parsed(text: str, notice: Notice | None) -> None:
    assert read_notice(text, "the source") == notice


@pytest.mark.parametrize("text", ["now!", "[1]", "null", '{"deadline": "soon"}', "\x00", '{"kind": "dra'])
def test_unreadable_text_is_a_notice(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert read_notice(text, "/run/notice") == Notice("notice", "EvictionNotice")
    assert "/run/notice" in caplog.text


def test_the_file_is_read_at_most_once_per_interval(tmp_path: Path) -> None:
    clock = ManualClock()
    file = NoticeFile(tmp_path / "notice", clock)
    assert file.poll() is None
    (tmp_path / "notice").write_text('{"kind": "drain"}')
    assert file.poll() is None
    clock.now += 1
    assert file.poll() == Notice("drain", "EvictionNotice")


def test_a_folder_in_place_of_the_file_is_ignored(tmp_path: Path) -> None:
    assert NoticeFile(tmp_path).poll() is None


def in_a_worker(monkeypatch: pytest.MonkeyPatch, info: Any, rank: int = 0) -> None:
    """Let this process be a worker of Ray Train, one of four, with this information about a preemption."""
    preemption = SimpleNamespace(preemption_info=info)
    context = SimpleNamespace(preemption_context=preemption, get_world_size=lambda: 4, get_world_rank=lambda: rank)
    module = SimpleNamespace(get_train_context=lambda: context)
    monkeypatch.setitem(sys.modules, "ray.train.v2._internal.execution.context", module)


@pytest.mark.parametrize(
    ("info", "notice"),
    [
        (None, None),
        (SimpleNamespace(deadline_ms=None), Notice("notice", "EvictionNotice")),
        (SimpleNamespace(deadline_ms=2500), Notice("notice", "EvictionNotice", 2.5)),
    ],
)
def test_rays_preemption_info_is_a_notice(info: Any, notice: Notice | None, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_worker(monkeypatch, info)
    assert RayPreemption().poll() == notice


@pytest.mark.parametrize(
    ("rank", "going", "least", "kind"),
    [
        (3, {"n3": [3]}, 2, "handover"),
        (0, {"n3": [3]}, 2, None),
        (0, {"n2": [2], "n3": [3]}, 2, None),
        (2, {"n2": [2], "n3": [3]}, 2, "handover"),
        (0, {"n2": [2], "n3": [3]}, 3, "notice"),
        (3, {"n2": [2], "n3": [3]}, 3, "notice"),
        (3, {"n3": [3]}, 0, "notice"),
    ],
)
def test_an_elastic_job_hands_over_the_ranks_of_draining_nodes_while_enough_are_left(
    rank: int, going: dict[str, list[int]], least: int, kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = SimpleNamespace(deadline_ms=2500, preempted_node_to_ranks=going)
    in_a_worker(monkeypatch, info, rank)
    notice = RayPreemption(least=least).poll()
    assert (notice and notice.kind) == kind
    assert notice is None or notice.deadline == 2.5


def test_a_later_notice_replaces_only_a_handover(tmp_path: Path) -> None:
    clock, file = ManualClock(), tmp_path / "notice"
    listener = Listener([NoticeFile(file, clock)])
    for words, heard in (("handover", "handover"), ("drain", "drain"), ("notice", "drain")):
        file.write_text(f'{{"kind": "{words}", "reason": "{words} {len(words)}"}}')
        clock.now += 1
        found = listener.poll()
        assert found is not None
        assert found.kind == heard


def test_a_handover_that_its_source_repeats_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    in_a_worker(monkeypatch, SimpleNamespace(deadline_ms=2500, preempted_node_to_ranks={"n3": [3]}), 3)
    listener = Listener([RayPreemption(least=2)])
    assert [listener.poll() for _ in range(3)] == [Notice("handover", deadline=2.5)] * 3
    assert caplog.text.count("committing and stopping") == 1


def test_the_controllers_notice_precedes_rays(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    in_a_worker(monkeypatch, SimpleNamespace(deadline_ms=0))
    source = RayPreemption(CONTROLLER_GRACE_PERIOD, clock)
    assert source.poll() == Notice("commit"), "until then the program commits and continues"
    clock.now += CONTROLLER_GRACE_PERIOD
    assert source.poll() == Notice()


def test_a_request_to_commit_is_kept_beside_the_notice(tmp_path: Path) -> None:
    clock, file = ManualClock(), tmp_path / "notice"
    listener = Listener([NoticeFile(file, clock)], wall=lambda: 100.0)

    def hear(notice: Notice) -> tuple[Notice | None, Notice | None]:
        file.write_text(notice.encode())
        clock.now += 1
        return listener.poll(), listener.request

    first, second = (Notice.of_commit(Reason.EVICTION_NOTICE, at) for at in (150.0, 250.25))
    assert hear(Notice.of_commit(Reason.EVICTION_NOTICE, 99.0)) == (None, None), "it was for an earlier process"
    assert hear(first) == (None, first)
    assert hear(second) == (None, second)
    handover = Notice.of_handover(300.0)
    assert hear(handover) == (handover, second)
    assert hear(Notice.of(Reason.EVICTION_NOTICE, 301.0)) == (Notice("notice", "EvictionNotice", 301.0), second)
