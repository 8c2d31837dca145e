"""`adaptive`: waits for spot capacity while the expected cost of waiting is lower than that of starting on demand.

The model is fitted offline to availability traces by tests/bench/fit_adaptive.py. For each zone of the traces it has
the hazard rates of losing and of regaining capacity, by the age of the availability spell. Backward induction over
remaining time and remaining work gives the minimum slack at which it pays to wait for spot capacity, or to leave
on-demand for it. Slack is the remaining time minus the remaining work.

Rules
 1. Safety net: use only the fallback once no other tier can meet the deadline.
 2. Use the available spot capacity with the lowest price of useful time, until it is lost. Move to a cheaper spot tier
    that is known to have capacity if the lower price, over the time for which the model expects that capacity to last,
    saves more than the overheads of two starts, and if there is slack for one start and for another wait.
 3. Without spot capacity, wait while the slack is at least `wait`; else on-demand.
 4. From on-demand, move to spot capacity that is known to be available while the slack is at least `leave`. If the job
    trains until the spot attempt is ready, the capacity need not be known. Otherwise, try a spot tier whose capacity is
    unknown when the probability that it is back makes the try pay, at most every RETURN_INTERVAL, and while the slack
    also covers a try that fails.
 5. The zones of the model are weighted by the likelihood of the spells that the job observed on the tier, and of those
    that all jobs had observed there before its first attempt. If a memoryless model explains the job's own spells
    clearly better than every zone, the choice is that of `uniform-progress`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import itemgetter

from spotladder.core.ages import next_tick, ticks_between, ticks_of
from spotladder.core.copying import replace
from spotladder.core.durations import format_duration
from spotladder.core.model import Instant, Seconds, Tier, TierChoice, TierView
from spotladder.core.policies.adaptive_tables import Model, Slack, expected_life, least_slack, survivals
from spotladder.core.policies.adaptive_zones import explains, still_waits_until, weights
from spotladder.core.policies.safety_net import EXACT, JUST_AFTER, SafetyNet, price_of
from spotladder.core.policies.uniform_progress import UniformProgress

START: Seconds = 180.0
"""Duration of a start that a move must pay for if the overhead of a start is unknown."""

RETURN_INTERVAL: Seconds = 1800.0
"""Minimum time between the newest observation of a tier without capacity and a try to return to it from on-demand."""

USUAL_RATIO = 3.145
"""Ratio of the on-demand price to the spot price if one of them is unknown."""


class Adaptive:
    """Without a deadline, or while the remaining work is unknown, it chooses as `uniform-progress` does.

    `model` is the fitted model: `policies.registry` passes the model of the package, and a benchmark passes a
    model that was fitted without the tested zone.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    def choose(self, view: TierView) -> TierChoice:
        """The tier to use, or None to wait for spot capacity."""
        net = SafetyNet(view)
        slack = net.slack
        if slack is None or net.forced or not net.spot or net.fallback is None:
            return UniformProgress().choose(view)
        if net.on_fallback:
            return self._from_fallback(net, slack)
        if net.has_capacity:
            return self._from_spot(net, slack)
        if usable := [tier for tier in net.spot if net.may_start(tier)]:
            best = usable[0] if len(usable) == 1 else min(usable, key=lambda tier: self._useful_price(net, tier))
            return _moved(net, best, "spot capacity may be available")
        if not self._trusted(net):
            return self._reviewed(net, replace(UniformProgress().choose(view), holds_until=None))
        needed = min(self._least_slack(net, tier).wait for tier in net.spot)
        if slack < needed - EXACT:
            why = f"no spot capacity, and waiting needs {_rounded(needed)} of slack, {_rounded(slack)} are left"
            return self._reviewed(net, net.choice(net.fallback.name, why, math.inf))
        waiting = view.current if view.live and view.current in view.open else None
        why = f"waits for spot capacity: {_rounded(slack)} of slack are left, {_rounded(needed)} needed"
        choice = net.choice(waiting, why, self._waits_until(net, slack, needed))
        return self._reviewed(net, choice.reviewed_by(view.now + slack - needed + JUST_AFTER))

    def _waits_until(self, net: SafetyNet, slack: Seconds, needed: Seconds) -> Instant | None:
        """The earliest time at which the choice to wait for the only spot tier may change; None if unknown."""
        view, tier = net.view, net.spot[0]
        spells = view.spells(tier.name)
        if len(net.spot) > 1 or not spells or spells[-1].available or spells[-1].until != view.now:
            return None
        fleet, terms, left = view.fleet(tier.name), _terms(net, tier), view.remaining or 0.0
        until = still_waits_until(self._model, spells, fleet, terms, remaining=left, slack=slack, needed=needed)
        return until if net.forced_at is None else min(until, net.forced_at)

    def _from_spot(self, net: SafetyNet, slack: Seconds) -> TierChoice:
        """Keep the spot tier of the live attempt, or move to a cheaper one if that pays."""
        view = net.view
        kept = net.kept(view.current, "the job stays on spot until it is lost")
        price = next((price_of(tier) for tier in net.spot if tier.name == view.current), 0.0)
        cheaper = [tier for tier in net.spot if price_of(tier) < price]
        if not cheaper:
            return kept
        kept = replace(kept, regardless_of_spot=False)
        candidates = [tier for tier in cheaper if net.may_start(tier) and view.outlook(tier.name).capacity]
        if not candidates:
            return kept
        if self._trusted(net):
            best = min(candidates, key=lambda tier: self._useful_price(net, tier))
            start = _start(view, best)
            lasts = min(self._life(net, best), view.remaining or 0.0)
            saves = (price - price_of(best)) * lasts > (price + price_of(best)) * start
            if saves and slack - start >= self._least_slack(net, best).wait:
                return net.choice(best.name, f"{best.name} is cheaper, and is expected to last for {_rounded(lasts)}")
        # The expected life grows with the age of the capacity.
        return self._reviewed(net, replace(kept, holds_until=None))

    def _useful_price(self, net: SafetyNet, tier: Tier) -> tuple[float, float]:
        """USD per node and hour of training on this tier, with the overhead of a start spread over the expected life of
        the capacity; then its price."""
        price, start = price_of(tier), net.view.outlook(tier.name).overhead
        useful = self._life(net, tier) - start
        return price * (useful + start) / useful if useful > 0 else math.inf, price

    def _life(self, net: SafetyNet, tier: Tier) -> Seconds:
        """The expected life of the tier's capacity from now on."""
        view = net.view
        return expected_life(self._model, _zones(self._model, view, tier), _age(view, tier))

    def _from_fallback(self, net: SafetyNet, slack: Seconds) -> TierChoice:
        """Leave on-demand for spot capacity that is known to be available, if the slack covers the risk of
        losing it."""
        view = net.view
        known = [tier for tier in net.spot if view.outlook(tier.name).overlaps or view.outlook(tier.name).capacity]
        candidates = [tier for tier in known if net.may_start(tier)]
        if not candidates:
            return self._without_known_capacity(net, slack)
        if not self._trusted(net):
            return self._reviewed(net, replace(UniformProgress().choose(view), holds_until=None))
        best = min(candidates, key=lambda tier: self._least_slack(net, tier).leave)
        needed = self._least_slack(net, best).leave
        if slack < needed - EXACT:
            why = f"leaving on-demand needs {_rounded(needed)} of slack, {_rounded(slack)} are left"
            return self._reviewed(net, net.choice(view.current, why))
        found = "is available" if view.outlook(best.name).capacity else "may be available"
        return _moved(net, best, f"spot capacity {found} and {_rounded(slack)} of slack are left")

    def _without_known_capacity(self, net: SafetyNet, slack: Seconds) -> TierChoice:
        """Stay on on-demand, or try a spot tier whose capacity is unknown."""
        view = net.view
        stays = net.choice(view.current, "no spot capacity is known to be available", math.inf)
        if net.certain or not self._trusted(net):
            return stays
        stays = self._reviewed(net, stays)
        hidden = [tier for tier in net.spot if net.may_start(tier) and _seen_ago(view, tier) >= RETURN_INTERVAL - EXACT]
        tries = [(gain, tier) for tier in hidden if (gain := self._gain_of_try(net, tier)) > 0]
        if not tries:
            return stays
        _gain, best = max(tries, key=itemgetter(0))
        takes = _start(view, best) + _start(view, net.fallback or best) + best.provision_timeout
        if slack - takes < self._least_slack(net, best).leave:
            return stays
        chance = self._chance(view, best)
        return net.choice(best.name, f"spot capacity is back with a probability of {100 * chance:.0f} %")

    def _gain_of_try(self, net: SafetyNet, tier: Tier) -> float:
        """The expected saving, in USD per node times 3600, of a try to return to this tier, beyond one more start on
        the fallback as hysteresis. At most 0 if a price is unknown."""
        view, fallback = net.view, net.fallback
        if fallback is None or not (tier.price.known and fallback.price.known):
            return 0.0
        chance, again = self._chance(view, tier), _start(view, fallback) * price_of(fallback)
        zones = _zones(self._model, view, tier)
        lasts = min(expected_life(self._model, zones, 0.0), view.remaining or 0.0)
        saves = (price_of(fallback) - price_of(tier)) * lasts - price_of(tier) * _start(view, tier)
        return chance * saves - (1.0 - chance) * again - again

    def _chance(self, view: TierView, tier: Tier) -> float:
        """The probability that the tier has capacity now, at most its long-run share."""
        model, spells = self._model, view.spells(tier.name)
        zones = _zones(model, view, tier)
        share = sum(weight * share for weight, share in zip(zones, model.shares, strict=True))
        if not spells or spells[-1].available:
            return share
        seen = ticks_of(spells[-1])
        now = seen + ticks_between(spells[-1].until, view.now)
        before, until = survivals(model, False, seen), survivals(model, False, now)
        lasts = sum(weight * math.exp(log - old) for weight, log, old in zip(zones, until, before, strict=True))
        return share * (1.0 - lasts)

    def _reviewed(self, net: SafetyNet, choice: TierChoice) -> TierChoice:
        """This choice, to be reviewed at the next moment at which the model's answers may change: when the age of a
        spell, or the time since its last observation, has grown by a tick."""
        now = net.view.now
        newest = [spells[-1] for tier in net.spot if (spells := net.view.spells(tier.name))]
        times = [at for spell in newest for at in (next_tick(spell.since, now), next_tick(spell.until, now))]
        return choice.reviewed_by(min(times, default=None))

    def _trusted(self, net: SafetyNet) -> bool:
        return all(explains(self._model, net.view.spells(tier.name)) for tier in net.spot)

    def _least_slack(self, net: SafetyNet, tier: Tier) -> Slack:
        """The minimum slack for waiting for this tier, and for leaving on-demand for it, now."""
        view, zones = net.view, _zones(self._model, net.view, tier)
        return least_slack(self._model, zones, _terms(net, tier), _age(view, tier), view.remaining or 0.0)


def _moved(net: SafetyNet, tier: Tier, why: str) -> TierChoice:
    """The choice of this spot tier. Without another one, it is kept until its capacity is lost."""
    return net.kept(tier.name, why) if len(net.spot) == 1 else net.choice(tier.name, why)


def _age(view: TierView, tier: Tier) -> Seconds:
    """The age of the tier's current availability spell; 0 if that is unknown. An attempt that has just failed leaves
    the capacity unknown: then the newest spell counts as current for RETURN_INTERVAL."""
    spells, capacity = view.spells(tier.name), view.outlook(tier.name).capacity
    if not spells:
        return 0.0
    current = _seen_ago(view, tier) < RETURN_INTERVAL - EXACT if capacity is None else spells[-1].available is capacity
    return view.now - spells[-1].since if current else 0.0


def _seen_ago(view: TierView, tier: Tier) -> Seconds:
    """The time since the newest observation of the tier's availability; 0 without one: the policy
    does not interrupt training to try a tier that it has not observed."""
    spells = view.spells(tier.name)
    return view.now - spells[-1].until if spells else 0.0


def _start(view: TierView, tier: Tier) -> Seconds:
    """The duration of a start on this tier."""
    return view.outlook(tier.name).overhead or START


def _terms(net: SafetyNet, tier: Tier) -> tuple[Seconds, float]:
    """The overhead of a start, and the ratio of the on-demand price to that of this spot tier."""
    fallback = net.fallback
    if fallback is None or not (tier.price.known and fallback.price.known and tier.price.per_node_hour > 0):
        return net.overhead, USUAL_RATIO
    return net.overhead, fallback.price.per_node_hour / tier.price.per_node_hour


def _rounded(seconds: Seconds) -> str:
    return _minutes(max(0, round(seconds / 60.0)))


@lru_cache(maxsize=65536)
def _minutes(minutes: int) -> str:
    return format_duration(minutes * 60.0)


def _zones(model: Model, view: TierView, tier: Tier) -> tuple[float, ...]:
    """The weight of each zone of the model for this tier."""
    return weights(model, view.spells(tier.name), view.fleet(tier.name))
