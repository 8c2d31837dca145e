from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spotladder.clusters.queue import CROWD, CROWDED_WINDOW, LONGEST_PAUSE, MAX_SUPERSEDED, WINDOW, Queue
from spotladder.clusters.throttle import Throttle
from tests.clusters.stepped_clock import SteppedClock


@asynccontextmanager
async def running(throttle: Throttle | None = None) -> AsyncIterator[tuple[Queue[str], SteppedClock]]:
    clock = SteppedClock()
    queue: Queue[str] = Queue(clock, throttle=throttle, jitter=lambda: 1.0)
    task = asyncio.create_task(queue.run())
    try:
        yield queue, clock
    finally:
        task.cancel()


async def test_a_key_is_queued_once_however_often_it_is_added() -> None:
    async with running() as (queue, _):
        for _ in range(3):
            queue.add("a")
        queue.add("b")
        assert [await queue.get(), await queue.get()] == ["a", "b"]
        assert queue.depth == 0


async def test_a_key_added_while_it_is_processed_is_requeued_afterwards() -> None:
    async with running() as (queue, _):
        queue.add("a")
        await queue.get()
        queue.add("a")
        queue.add("a")
        assert queue.depth == 0
        queue.done("a")
        assert queue.depth == 1
        assert await queue.get() == "a"
        queue.done("a")
        assert not queue.busy


async def test_a_busy_worker_yields_to_other_tasks_between_keys() -> None:
    async with running() as (queue, _):
        for number in range(100):
            queue.add(str(number))
        turns = itertools.count()

        async def work() -> None:
            while queue.depth:
                queue.done(await queue.get())

        async def renew_the_lease() -> None:
            while next(turns) < 100 and queue.depth:
                await asyncio.sleep(0)

        await asyncio.gather(work(), renew_the_lease())
        assert next(turns) >= 100


async def test_a_delayed_key_is_queued_at_the_earliest_requested_time() -> None:
    async with running() as (queue, clock):
        queue.add_at("a", 30)
        queue.add_at("a", 10)
        queue.add_at("a", 20)
        await clock.advance(9.9)
        assert queue.depth == 0
        await clock.advance(0.2)
        assert await queue.get() == "a"
        queue.done("a")
        await clock.advance(60)
        assert queue.depth == 0


async def test_failures_double_the_backoff_up_to_a_limit_and_success_resets_it() -> None:
    async with running() as (queue, clock):
        pauses = []
        for _ in range(14):
            queue.add("a")
            began = clock.ticks()
            while not queue.depth:
                await clock.advance(0.05)
            await queue.get()
            pauses.append(clock.ticks() - began)
            queue.done("a", failed=True)
        assert pauses[0] == 0
        assert 0.1 <= pauses[1] <= 0.2
        assert all(later >= earlier - 0.06 for earlier, later in itertools.pairwise(pauses))
        assert pauses[-1] <= LONGEST_PAUSE + 0.1
        await clock.advance(LONGEST_PAUSE)
        await queue.get()
        queue.done("a")
        assert queue.failures("a") == 0
        queue.add("a")
        assert queue.depth == 1


async def test_changes_do_not_shorten_the_backoff_of_a_failing_key() -> None:
    async with running() as (queue, clock):
        queue.add("a")
        await queue.get()
        for _ in range(6):
            queue.done("a", failed=True)
        for _ in range(20):
            queue.add("a")
            assert queue.depth == 0
            await clock.advance(0.1)


async def test_a_change_during_a_failed_reconcile_is_not_lost() -> None:
    async with running() as (queue, clock):
        queue.add("a")
        await queue.get()
        queue.add("a")
        queue.done("a", failed=True)
        await clock.advance(1)
        assert await queue.get() == "a"


async def test_a_change_while_a_key_is_processed_and_forgotten_is_not_lost() -> None:
    async with running() as (queue, clock):
        queue.add("a")
        await queue.get()
        queue.add_at("a", 60)
        queue.add_changed("a")
        queue.forget("a")
        queue.done("a")
        await clock.advance(1)
        assert await queue.get() == "a"
        queue.done("a")
        await clock.advance(100)
        assert queue.depth == 0, "the timer was dropped"


async def test_superseded_timers_do_not_add_up() -> None:
    async with running() as (queue, clock):
        for earlier in range(10 * MAX_SUPERSEDED):
            queue.add_at("a", 7 * 86_400 - earlier)
            queue.add_at(f"gone-{earlier}", 7 * 86_400)
            queue.forget(f"gone-{earlier}")
        queue.add_at("b", 5)
        assert len(queue._timers) <= MAX_SUPERSEDED + 2 * len(queue._due)
        await clock.advance(10)
        assert await queue.get() == "b"
        queue.done("b")
        await clock.advance(7 * 86_400)
        assert await queue.get() == "a"
        assert queue.depth == 0


async def test_no_key_is_processed_by_two_workers_at_the_same_time() -> None:
    async with running() as (queue, clock):
        working: set[str] = set()
        processed: dict[str, int] = {}

        async def work() -> None:
            while True:
                key = await queue.get()
                assert key not in working
                working.add(key)
                processed[key] = processed.get(key, 0) + 1
                await clock.sleep(0.3)
                working.discard(key)
                queue.done(key)

        workers = [asyncio.create_task(work()) for _ in range(4)]
        for index in range(200):
            queue.add(f"key-{index % 7}")
            await clock.advance(0.05)
        await clock.advance(5)
        assert all(not worker.done() for worker in workers)
        assert min(processed.values()) > 5
        for worker in workers:
            worker.cancel()


async def test_the_throttle_bounds_the_rate_of_reconciles() -> None:
    clock = SteppedClock()
    throttle = Throttle(10, 5, clock)
    taken = 0

    async def take() -> None:
        nonlocal taken
        for _ in range(100):
            await throttle.take()
            taken += 1

    task = asyncio.create_task(take())
    await clock.advance(0)
    assert taken == 5
    await clock.advance(1)
    assert 14 <= taken <= 16
    task.cancel()


async def test_the_queue_is_idle_while_no_key_waits_or_is_reconciled() -> None:
    queue: Queue[str] = Queue(SteppedClock())
    assert queue.idle.is_set()
    queue.add("a")
    queue.add("b")
    assert not queue.idle.is_set()
    await queue.get()
    assert not queue.idle.is_set(), "b waits"
    await queue.get()
    queue.done("b")
    assert not queue.idle.is_set(), "a is reconciled"
    queue.add("a")
    queue.done("a")
    assert not queue.idle.is_set(), "a is queued again"
    await queue.get()
    queue.done("a", failed=True)
    assert queue.idle.is_set(), "a waits for its retry, not for a worker"


async def test_changes_within_the_window_are_processed_together() -> None:
    async with running() as (queue, clock):
        for _ in range(4):
            queue.add_changed("a")
            await clock.advance(WINDOW / 5)
        assert (queue.depth, queue.busy, queue.idle.is_set()) == (0, True, False)
        await clock.advance(WINDOW / 5)
        assert queue.depth == 1, "the window starts with the first change"
        queue.add_changed("a")
        queue.done(await queue.get())
        await clock.advance(10 * WINDOW)
        assert (queue.depth, queue.busy, queue.idle.is_set()) == (0, False, True), "one pass for all changes"


async def test_a_change_during_a_reconcile_is_processed_at_most_one_window_after_it_happened() -> None:
    async with running() as (queue, clock):
        queue.add("a")
        await queue.get()
        queue.add_changed("a")
        await clock.advance(WINDOW * 0.6)
        queue.add_changed("a")
        queue.done("a")
        assert (queue.depth, queue.busy) == (0, True)
        await clock.advance(WINDOW * 0.5)
        assert await queue.get() == "a"
        queue.add_changed("a")
        await clock.advance(2 * WINDOW)
        queue.done("a")
        assert queue.depth == 1, "its window has passed"


async def test_a_key_that_was_processed_just_now_waits_longer_while_others_wait_for_a_worker() -> None:
    async with running() as (queue, clock):
        for key in ("a", "b"):
            queue.add(key)
            await queue.get()
        queue.done("a")
        for key in ("other", "another"):
            queue.add(key)
        for key in ("a", "b", "new"):
            queue.add_changed(key)
        queue.done("b")
        await clock.advance(1.5 * WINDOW)
        assert [await queue.get() for _ in range(3)] == ["other", "another", "new"], "a new key waits for WINDOW only"
        assert queue.depth == 0
        await clock.advance(CROWDED_WINDOW)
        assert [await queue.get(), await queue.get()] == ["a", "b"]
        for key in ("a", "b"):
            queue.done(key)
        queue.add_changed("a")
        await clock.advance(1.5 * WINDOW)
        assert queue.depth == 1, "no key waits for a worker"


async def test_a_key_waits_longer_while_many_keys_are_processed() -> None:
    async with running() as (queue, clock):
        for key in ("a", *map(str, range(CROWD))):
            queue.add(key)
            await queue.get()
        queue.done("a")
        queue.add_changed("a")
        await clock.advance(CROWDED_WINDOW - WINDOW)
        assert queue.depth == 0
        await clock.advance(2 * WINDOW)
        assert await queue.get() == "a"
        queue.done("0")
        queue.done("a")
        queue.add_changed("a")
        await clock.advance(1.5 * WINDOW)
        assert queue.depth == 1, "fewer keys are processed"


async def test_a_key_that_is_added_or_due_does_not_wait_for_further_changes() -> None:
    async with running() as (queue, clock):
        queue.add_changed("a")
        queue.add("a")
        queue.add_changed("b")
        queue.add_at("b", WINDOW / 2)
        assert queue.depth == 1
        await clock.advance(WINDOW / 2)
        assert [await queue.get(), await queue.get()] == ["a", "b"]
        queue.done("a")
        queue.done("b")
        await clock.advance(2 * WINDOW)
        assert not queue.busy, "the windows are over with the reconciles"


async def test_callers_that_are_cancelled_while_they_wait_delay_no_others() -> None:
    clock = SteppedClock()
    throttle = Throttle(1, 1, clock)
    await throttle.take()
    waiting = [asyncio.create_task(throttle.take()) for _ in range(1000)]
    await clock.advance(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await clock.advance(1)
    assert throttle.admits()
