"""Specs and kinds of random worlds, and the invariants that hold in each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, note, settings

from spotladder.core.model import (
    Exhausted,
    FailureUnit,
    Handover,
    JobSpec,
    Overlap,
    Price,
    Stage,
    TierChoice,
    TierView,
)
from spotladder.core.policies.ordered import Ordered
from tests.core.builders import spec, tier
from tests.core.world_decider import Decider
from tests.core.worlds import TOTAL, RandomWorld, edit, suspend
from tests.searching import examples

many = settings(max_examples=examples(500), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def specs(dice: Random, **fixed: object) -> JobSpec:
    tiers = [
        tier(
            f"tier-{index}",
            dice.choice([-1, 0, 1, 3]),
            dice.choice([20.0, 60.0, 300.0]),
            notice=dice.choice([0.0, 45.0]),
        )
        for index in range(dice.randint(1, 4))
    ]
    chosen: dict[str, object] = {
        "workers": dice.randint(1, 3),
        "recovery_timeout": dice.choice([10.0, 90.0]),
        "stall_timeout": dice.choice([60.0, 600.0]),
        "grace": dice.choice([0.0, 30.0]),
        "handover": dice.choice(list(Handover)),
        "failure_unit": dice.choice(list(FailureUnit)),
        "exhausted": dice.choice(list(Exhausted)),
        "backoff_limit": dice.choice([None, None, 3]),
        "contact_timeout": dice.choice([0.0, 60.0]),
        "start_timeout": dice.choice([120.0, 1800.0]),
    }
    return spec(*tiers, **{**chosen, **fixed})


def worlds_contain(in_world: Callable[[int], Mapping[str, bool]], *, seeds: int, **times: int) -> None:
    """Make worlds until more than `times` of them had each of these; otherwise an invariant would not be tested for
    it. `in_world` says what the world of a seed had."""
    found: Counter[str] = Counter()
    for seed in range(seeds):
        found.update(in_world(seed))
        if all(found[name] > least for name, least in times.items()):
            return
    raise AssertionError(f"{seeds} worlds have only {dict(found)}")


def success_has_evidence(decider: Decider) -> None:
    """A job has succeeded only if its last step is committed: in these worlds a program that ends before was
    interrupted."""
    note(f"{decider.state}")
    assert decider.state.stage is not Stage.SUCCEEDED or decider.world.committed == TOTAL


def no_loss_is_counted_twice(decider: Decider) -> None:
    # What an attempt loses beside pods, such as "its program", has no name of its own.
    identities = [(loss.pod, loss.attempt if " " in loss.pod else 0) for loss in decider.losses]
    note(f"{decider.state}")
    assert len(identities) == len(set(identities)), "a failure was counted twice"


def elastic_world(seed: int, **fixed: object) -> RandomWorld:
    dice = Random(seed)
    workers = dice.randint(2, 4)
    job = specs(dice, workers=workers, min_workers=dice.randint(1, workers - 1), handover=Handover.FENCED, **fixed)
    return RandomWorld(
        job,
        dice,
        silences=dice.choice([0.0, 30.0]),
        begins_with_all_workers=dice.random() < 0.5,
        maintenance=dice.choice([0.0, 0.05]),
    )


class Returning(Ordered):
    """Returns to the first open tier whose attempt starts beside the live one."""

    def choose(self, view: TierView) -> TierChoice:
        back = [outlook.name for outlook in view.outlooks if outlook.overlaps and outlook.name in view.available]
        return TierChoice(back[0], why="it is cheaper") if view.live and back else super().choose(view)


def world_with_overlap(seed: int, **fixed: object) -> RandomWorld:
    dice = Random(seed)
    overlap = Overlap(dice.choice([None, 60.0, 600.0]), dice.choice([None, 0.05, 5.0]))
    job = specs(dice, overlap=overlap, handover=Handover.FENCED, **fixed)
    tiers = (replace(entry, price=Price(index + 1.0, 9.0)) for index, entry in enumerate(job.tiers))
    calmer = dice.random() < 0.5  # Otherwise most standby attempts fail before they take over.
    return RandomWorld(
        replace(job, tiers=tuple(tiers)),
        dice,
        notices_only=calmer,
        silences=0.0 if calmer else dice.choice([0.0, 30.0]),
        maintenance=dice.choice([0.0, 0.05, 0.2]),
    )


def world_with_hedges(seed: int, **fixed: object) -> RandomWorld:
    dice = Random(seed)
    overlap = Overlap(dice.choice([None, 60.0]), dice.choice([0.02, 5.0]), hedge_after=dice.choice([5.0, 15.0, 40.0]))
    job = specs(dice, overlap=overlap, handover=Handover.FENCED, **fixed)
    first = tier("tier-first", dice.choice([-1, 1]), dice.choice([60.0, 300.0]))
    tiers = (replace(entry, price=Price(index + 1.0, 9.0)) for index, entry in enumerate((first, *job.tiers)))
    return RandomWorld(replace(job, tiers=tuple(tiers)), dice, dry={"tier-first"}, silences=dice.choice([0.0, 30.0]))


def elastic_world_with_overlap(seed: int) -> RandomWorld:
    """Elastic jobs whose planned moves, notices or waits for capacity start attempts beside the live one."""
    hedged = seed % 3 == 0
    build = world_with_hedges if hedged else world_with_overlap
    world = build(seed, exhausted=Exhausted.RESTART, backoff_limit=None)
    dice, workers = world.random, world.random.randint(2, 4)
    world.begins_with_all_workers = dice.random() < 0.7
    least = dice.randint(1, min(2, workers - 1))
    times = (max(entry.provision_timeout, dice.choice([0.0, 300.0])) for entry in world.spec.tiers)
    tiers = tuple(replace(entry, provision_timeout=time) for entry, time in zip(world.spec.tiers, times, strict=True))
    world.spec = replace(world.spec, tiers=tiers, workers=workers, min_workers=least)
    return world


def finishes_after_edits_and_suspensions(decider: Decider) -> None:
    """Run the job while its spec changes, then let it finish in a calm world by its own requeues."""
    world = decider.world
    dice = world.random
    for _ in range(15):
        decider.run(4)
        suspend(world, dice.random() < 0.1)
        edit(world)
    no_loss_is_counted_twice(decider)
    suspend(world, False)
    world.calm_down(dice.choice(world.spec.tiers).name)
    decider.crashes = 0.0
    decider.wake_at = decider.wake_at if decider.wake_at is not None else world.now
    decider.run_on_timers_only(600)
    note(f"{decider.state}")
    assert (decider.state.stage, world.committed) == (Stage.SUCCEEDED, TOTAL)
    assert decider.state.standby.attempt is None
