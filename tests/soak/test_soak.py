"""The plan of a soak, its attacks and the judgement of its figures."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from spotladder.checkpoints.entry_keys import key_of
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.errors import LogCorrupt, TooLarge
from tests import s3_server
from tests.checkpoints.memory_store import MemoryStore
from tests.e2e.steps import ReportedStep
from tests.soak.attacks import BROKEN, Endless, endless_bucket
from tests.soak.figures import percentile, problems, recovery
from tests.soak.plan import (
    API_SERVER_HANGS,
    ATTACK,
    BUCKET_ANSWERS,
    BUCKET_OUTAGE,
    BUCKET_REFUSES,
    LEADER_KILLED,
    LOSSES,
    SHORTEST,
    plan,
)


@pytest.mark.parametrize("minutes", [SHORTEST, 60])
@pytest.mark.parametrize("seed", range(20))
def test_each_half_has_all_outages_and_losses_and_only_the_second_one_has_attacks(seed: int, minutes: int) -> None:
    planned, half = plan(seed, minutes), minutes * 30.0
    assert planned == plan(seed, minutes)
    assert all(first.at <= second.at for first, second in pairwise(planned))
    for begin in (0.0, half):
        inside = [one for one in planned if begin <= one.at < begin + half]
        kinds = [one.what for one in inside]
        assert [kinds.count(kind) for kind in (LEADER_KILLED, API_SERVER_HANGS, BUCKET_REFUSES)] == [1] * 3
        assert sum(kind in LOSSES for kind in kinds) >= half // 60
        refuses, answers = (one.at for one in inside if one.what in (BUCKET_REFUSES, BUCKET_ANSWERS))
        assert answers - refuses == pytest.approx(BUCKET_OUTAGE)
        assert (ATTACK in kinds) is (begin > 0)


def test_another_seed_is_another_plan_and_a_short_soak_is_refused() -> None:
    assert plan(1, 60) != plan(2, 60)
    with pytest.raises(ValueError, match="give at least 10"):
        plan(1, SHORTEST - 1)


def test_a_recovery_ends_with_a_step_that_the_lost_process_had_not_made() -> None:
    steps = [(1, "a", 1), (2, "a", 2), (3, "a", 3), (9, "b", 2), (10, "b", 3), (11, "b", 4), (12, "b", 5)]
    done = [ReportedStep(at, "ns/job", 1, process, step) for at, process, step in steps]
    assert recovery(done, 2.5) == 8.5
    assert recovery(done, 11.5) is None
    assert recovery([], 1.0) is None


def test_the_endless_bucket_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Endless, "pause", 0.0)
    with endless_bucket("127.0.0.1") as endpoint:
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
        log = CommitLog(open_store("s3://b/p", {**keys, "AWS_ENDPOINT_URL": endpoint}), "job")
        with pytest.raises(TooLarge, match="has at least 10,001 objects"):
            log.read()


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
def test_each_broken_entry_is_found(content: bytes) -> None:
    store = MemoryStore()
    store.objects[f"job/{key_of(0)}"] = content
    with pytest.raises(LogCorrupt):
        CommitLog(store, "job").read()


def test_the_bucket_refuses_until_it_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_server, "refuses", threading.Event())
    statuses: list[str] = []
    answer = s3_server._atomic(lambda _environment, _start: [b"found"])
    s3_server.refuses.set()
    assert list(answer({"REQUEST_METHOD": "GET"}, lambda status, _: statuses.append(status))) == []
    assert statuses == ["503 Service Unavailable"]
    s3_server.refuses.clear()
    assert list(answer({"REQUEST_METHOD": "GET"}, None)) == [b"found"]


def test_the_percentile_is_one_of_the_values() -> None:
    assert percentile([3.0]) == 3.0
    assert percentile(range(1, 101)) == 99
    assert percentile(range(1, 51)) == 50


@pytest.mark.parametrize(
    ("alone", "attacked", "memory", "says"),
    [
        ([10.0, 20.0], [26.0, 1.0], [100.0, 104.0], []),
        ([10.0, 20.0], [26.1], [100.0, 100.0], ["recovery p99 is 26.1 s with attackers, 20.0 s without"]),
        ([10.0], [10.0], [100.0, 106.0], ["the leader's memory changes by +6.0%"]),
        ([10.0], [10.0], [100.0, 94.0], ["the leader's memory changes by -6.0%"]),
        ([None, 10.0], [10.0], [1.0, 1.0], ["1 losses were followed by no new step"]),
        ([], [10.0], [1.0, 1.0], ["too few figures: 0 and 1 recoveries"]),
    ],
)
def test_the_judgement(
    alone: list[float | None], attacked: list[float | None], memory: list[float], says: list[str]
) -> None:
    found = problems(alone, attacked, memory)
    assert [said[: len(expected)] for said, expected in zip(found, says, strict=True)] == says
