"""The plan of a soak, its attacks and the judgement of its figures."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.e2e.kube import Object
from tests.e2e.steps import ReportedStep
from tests.soak.__main__ import works_on
from tests.soak.figures import (
    AFTER,
    BEFORE,
    Figures,
    MachineLost,
    again,
    disturbed,
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
