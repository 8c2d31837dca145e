"""The plan of a soak, its attacks and the judgement of its figures."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from spotladder.checkpoints.entry_keys import key_of
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.errors import LogCorrupt, TooLarge
from spotladder.train import rendezvous
from tests import s3_server
from tests.checkpoints.memory_store import MemoryStore
from tests.e2e.kube import Object
from tests.e2e.steps import ReportedStep
from tests.soak.__main__ import works_on
from tests.soak.attacks import BROKEN, Attackers, Endless, endless_bucket
from tests.soak.figures import (
    AFTER,
    BEFORE,
    Figures,
    MachineLost,
    again,
    disturbed,
    percentile,
    problems,
    recovery,
)
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
from tests.ways import LEVEL

WORKING: Object = {"metadata": {}, "spec": {"nodeName": "a"}, "status": {"phase": "Running"}}


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
    with pytest.raises(ValueError, match="give at least 20"):
        plan(1, SHORTEST - 1)


@pytest.mark.parametrize(
    ("change", "works"),
    [
        ({}, True),
        ({"status": {"phase": "Pending"}}, True),
        ({"status": {"phase": "Succeeded"}}, False),
        ({"metadata": {"deletionTimestamp": "2026-11-29T12:00:00Z"}}, False),
        ({"spec": {"nodeName": "b"}}, False),
        ({"spec": {}}, False),
    ],
)
def test_a_lost_machine_disturbs_the_jobs_whose_pods_work_on_it(change: Object, works: bool) -> None:
    assert works_on("a", WORKING | change) is works


def test_a_recovery_ends_with_a_step_that_the_lost_process_had_not_made() -> None:
    steps = [(1, "a", 1), (2, "a", 2), (3, "a", 3), (9, "b", 2), (10, "b", 3), (11, "b", 4), (12, "b", 5)]
    done = [ReportedStep(at, "ns/job", 1, process, step) for at, process, step in steps]
    assert recovery(done, 2.5) == 8.5
    assert recovery(done, 11.5) is None
    assert recovery([], 1.0) is None


def test_the_endless_bucket_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Endless, "pause", 0.0)
    monkeypatch.setattr(Endless, "taken", [])
    with endless_bucket("127.0.0.1") as endpoint:
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
        log = CommitLog(open_store("s3://b/p", {**keys, "AWS_ENDPOINT_URL": endpoint}), "job")
        with pytest.raises(TooLarge, match="has at least 10,001 objects"):
            log.read()
    assert len(Endless.taken) >= 10


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


def test_a_job_that_loses_a_machine_again_before_it_has_recovered_is_disturbed_twice() -> None:
    one, two, three = (MachineLost(at, "power cut", "job", 20.0) for at in (100.0, 115.0, 140.0))
    other, never = one._replace(job="other", at=110.0), one._replace(at=10.0, recovery=None)
    losses = [one, two, three, other]
    assert [again(loss, losses) for loss in losses] == [True, True, False, False]
    assert again(one, [one, never])
    assert not again(never, [never, other])


def test_a_loss_is_disturbed_from_before_an_outage_until_after_it() -> None:
    outages = [(100.0, 200.0), (500.0, 520.0)]
    at = [100 - BEFORE - 1, 100 - BEFORE, 150, 200 + AFTER, 200 + AFTER + 1, 510]
    assert [disturbed(lost_at, outages) for lost_at in at] == [False, True, True, True, False, True]


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        (Figures([10.0, 20.0], [26.0, 1.0], [130.0], [100, 104], {"floods": 1}), []),
        (Figures([10.0, 20.0], [26.1], [], [100, 100]), ["recovery p99 is 26.1 s with attackers, 20.0 s without"]),
        (Figures([10.0], [10.0], [], [100, 106]), ["the leader's memory changes by +6.0%"]),
        (Figures([10.0], [10.0], [], [100, 94]), ["the leader's memory changes by -6.0%"]),
        (Figures([None, 10.0], [10.0], [None], [1, 1]), ["2 losses were followed by no new step"]),
        (Figures([], [10.0], [], [1, 1]), ["too few figures: 0 and 1 recoveries"]),
        (Figures([10.0], [10.0], [], [1, 1], {"asks": 3, "floods": 0}), ["no attack has acted: floods"]),
    ],
)
def test_the_judgement(figures: Figures, says: list[str]) -> None:
    found = problems(figures)
    assert [said[: len(expected)] for said, expected in zip(found, says, strict=True)] == says


class Hostile:
    """The part of a world that attackers use. `refuses`: the API server does not answer kubectl. `level` is the status
    of the jobs that ask for more."""

    namespace, checkpoints, refuses, level = "ns", "s3://b", False, LEVEL

    def __init__(self) -> None:
        self.kube = self.bucket = self
        self.store = MemoryStore()
        self.store.put_if_absent(f"{rendezvous._folder(1)}1.json", json.dumps({"hosts": ["::1"], "port": 1}).encode())

    def run(self, *_: object) -> str:
        assert not self.refuses, "connection refused"
        return ""

    apply = delete = run

    def list(self, *_: object) -> Sequence[Object]:
        self.run()
        return []

    def tier(self, name: str) -> Object:
        return {"name": name}

    def status(self, name: str) -> Object:
        self.run()
        return {"attempt": 1, "message": self.level}

    def log(self, *_: object) -> Hostile:
        return self

    def pods(self, *, name: str) -> Sequence[Object]:
        return [{"metadata": {"name": name}}]

    def path(self, _name: str) -> Sequence[object]:
        return []


def test_only_attacks_that_reach_their_aim_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Endless, "taken", [])
    e2e: Any = Hostile()
    attackers = Attackers(e2e, "http://endless", e2e, "job")
    attackers.act()
    assert attackers.attacks() == {"prints": 0, "lists": 0, "asks": 1, "breaks": 1, "floods": 1}
    e2e.level = "Running"
    attackers.act()
    assert attackers.attacks() == {"prints": 0, "lists": 0, "asks": 1, "breaks": 2, "floods": 2}
    e2e.refuses = True
    attackers.act()
    assert attackers.attacks() == {"prints": 0, "lists": 0, "asks": 1, "breaks": 3, "floods": 2}
