"""What a job costs beside its workers' nodes: heads, storage and egress."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.accounting import savings
from spotladder.core.model import CommitSize, Exit, ExtraCosts, Price, Progress, Stage
from spotladder.core.reasons import Reason
from tests.core.builders import SteppedJob, all_ready, attempt, lost, spec, tier, worker

HOUR, GIB, MONTH = 3600.0, 2**30, 730 * 3600.0
SIZE = CommitSize(bytes=10 * GIB, shared_bytes=4 * GIB)
PRICE = Price(1.0, 3.0)


def near(value: float) -> Any:
    return pytest.approx(value)


def job(**more: Any) -> SteppedJob:
    """A job with two workers, whose head costs $0.20 an hour, and whose second tier is in another region."""
    tiers = (
        tier("spot-a", 0, price=PRICE, head_per_hour=0.2),
        tier("on-demand", -1, price=Price(3.0, 3.0), head_per_hour=0.2, egress_per_gib=0.09),
    )
    return SteppedJob(spec(*tiers, storage_per_gib_month=0.023, keep=3, **more))


def committed(made: SteppedJob, step: int, start: int, number: int) -> SteppedJob:
    made.progress = Progress(step, 100, made.now, number, size=SIZE, start=start)
    return made


def test_the_head_costs_while_it_runs() -> None:
    made = job().running()
    before = made.state.extra.heads
    made.see_again(after=HOUR)
    assert made.state.extra.heads - before == near(0.2)
    made.see(attempt(1, worker("w1-0"), worker("w1-1")), after=HOUR)
    assert made.state.extra.heads - before == near(0.4), "it ran until it was observed to be gone"
    made.see_again(after=HOUR)
    assert made.state.extra.heads - before == near(0.4)


def test_the_bucket_stores_the_commits_that_are_kept() -> None:
    made = committed(job().running(), 10, 0, 1)
    made.see_again(after=0.0)
    made.see_again(after=MONTH)
    assert made.state.extra.storage == near(10 * 3 * 0.023)


def test_commits_cost_nothing_after_the_end_of_the_job() -> None:
    made = committed(job().running(), 100, 0, 1)
    made.see_again(after=0.0)
    made.see(all_ready(1, exit=Exit.SUCCEEDED), after=MONTH)
    assert made.state.stage is Stage.SUCCEEDED
    made.see(after=MONTH)
    assert made.state.extra.storage == near(10 * 3 * 0.023)


def moved_to_another_region(made: SteppedJob) -> SteppedJob:
    committed(made.running(), 10, 0, 1).see_again(after=60.0)
    made.lose_attempt(lost("w1-0"), worker("w1-1"))
    made.see(attempt(2))
    made.progress = replace(made.progress, attempt=2, start=7)
    made.see(all_ready(2), after=60.0)
    assert made.state.tier == "on-demand"
    assert made.state.stage is Stage.RUNNING
    return made


def test_a_start_in_another_region_pays_for_what_its_workers_read() -> None:
    made = moved_to_another_region(job())
    read = 10 + 4  # GiB: all files once, and the shared ones by the other worker
    assert made.state.extra.egress == near(read * 0.09)
    made.progress = replace(made.progress, start=9)  # the program starts again inside the attempt
    made.see(all_ready(2), after=60.0)
    assert made.state.extra.egress == near(2 * read * 0.09)


def test_all_of_it_counts_towards_the_budget() -> None:
    made = moved_to_another_region(job())
    nodes = sum(record.cost for record in made.state.tiers)
    assert made.state.spent_usd == near(nodes + made.state.extra.total)
    assert made.state.on_demand_usd == near(made.state.node_seconds / HOUR * 3.0 + made.state.extra.total)
    made.edit(budget=made.state.spent_usd - 0.5 * made.state.extra.egress)
    made.see_again(after=0.0)
    assert made.state.reason is Reason.BUDGET_EXCEEDED
    assert made.state.stage in (Stage.DRAINING, Stage.ENDING, Stage.FAILED)


def test_the_controller_looks_again_when_the_budget_ends() -> None:
    """The heads and the storage shorten the time for which the budget lasts."""

    def lasts(**more: Any) -> float:
        made = committed(job(budget=20.0, stall_timeout=1e9).running(), 10, 0, 1).edit(**more)
        decision = made.see_again(after=1.0)
        assert decision.wake_at is not None
        rate = (2 * 1.0 + 0.2) / HOUR
        assert decision.wake_at - made.now <= (20.0 - made.state.spent_usd) / rate + 1e-6
        return decision.wake_at - made.now

    assert lasts() < lasts(storage_per_gib_month=0.0)


def test_egress_is_no_cost_of_the_run_that_the_job_is_compared_with() -> None:
    made = moved_to_another_region(job())
    committed(made, 20, 7, 2).see_again(after=100.0)
    committed(made, 30, 7, 2).see_again(after=100.0)
    found = savings.uninterrupted_usd(made.spec, made.state)
    assert found is not None
    free = replace(made.state, extra=replace(made.state.extra, egress=0.0))
    assert savings.uninterrupted_usd(made.spec, free) == near(found)
    bare = replace(made.state, extra=ExtraCosts())
    nodes = savings.uninterrupted_usd(made.spec, bare)
    assert nodes is not None
    extra = made.state.extra
    heads = extra.heads * nodes / bare.on_demand_usd
    assert found == near(nodes + heads + extra.storage)
    with_egress, without = savings.savings(made.spec, made.state), savings.savings(made.spec, free)
    assert with_egress is not None
    assert without is not None
    assert with_egress < without


def test_without_prices_nothing_is_added() -> None:
    made = SteppedJob(spec(tier("spot-a", 0, price=PRICE), tier("on-demand", -1, price=PRICE)))
    moved_to_another_region(made)
    assert made.state.extra.total == 0.0
