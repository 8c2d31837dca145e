"""What the fitted model of `adaptive` expects of one spot tier, from the view of a job."""

from __future__ import annotations

import math
from operator import mul

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.accounting.price_history import mean_price
from spotladder.core.history.ages import next_tick, ticks_between, ticks_of
from spotladder.core.model import Instant, Price, Seconds, Spell, Tier, TierOutlook, TierView
from spotladder.core.policies import adaptive_zones
from spotladder.core.policies.adaptive_tables import (
    Model,
    columns,
    expected_life,
    knot_of,
    place_of,
    slack_at,
    survivals,
)
from spotladder.core.policies.safety_net import EXACT, SafetyNet, price_of

START: Seconds = 180.0
"""Duration of a start that a move must pay for if the overhead of a start is unknown."""

RETURN_INTERVAL: Seconds = 1800.0
"""Minimum time between the newest observation of a tier without capacity and a try to return to it."""

USUAL_RATIO = 3.145
"""Ratio of the on-demand price to the spot price if one of them is unknown."""


class Prospect:
    """One spot tier of a view. `seen_ago` is the time since the newest observation of its availability; 0 without one.
    `remaining` is the remaining work of the job, and `weights` the weight of each zone of the model. `terms` are the
    overhead of a start on the fallback, and the ratio of its price to that of the tier."""

    __slots__ = ("_model", "_net", "_spells", "_ticks", "newest", "remaining", "seen_ago", "terms", "tier", "weights")

    newest: Spell | None

    def __init__(self, model: Model, net: SafetyNet, tier: Tier) -> None:
        view = net.view
        spells = view.spells(tier.name)
        self.tier, self._model, self._net = tier, model, net
        self.newest = spells[-1] if spells else None
        self.seen_ago: Seconds = view.now - spells[-1].until if spells else 0.0
        self.remaining: Seconds = view.remaining or 0.0
        self.terms = net.overhead, _ratio(net, tier.price)
        self._spells, self._ticks = spells, ticks_of(spells[-1]) if spells else 0
        self.weights = adaptive_zones.weights(model, spells, self._ticks)

    @property
    def trusted(self) -> bool:
        """Whether the model explains the observed spells of the tier; it does before the first one."""
        return not self._spells or adaptive_zones.trusted(self._model, self._spells, self._ticks)

    @property
    def age(self) -> Seconds:
        """The age of the tier's current availability spell; 0 if that is unknown. An attempt that has just failed
        leaves the capacity unknown: then the newest spell counts as current for RETURN_INTERVAL."""
        newest, view = self.newest, self._net.view
        if newest is None:
            return 0.0
        capacity = view.outlook(self.tier.name).capacity
        current = self.seen_ago < RETURN_INTERVAL - EXACT if capacity is None else newest.available is capacity
        return view.now - newest.since if current else 0.0

    @property
    def overhead(self) -> Seconds:
        """The overhead of a start on this tier; 0 if it is unknown."""
        return self._net.view.outlook(self.tier.name).overhead

    @property
    def start(self) -> Seconds:
        """The duration of a start on this tier."""
        return start_of(self._net.view, self.tier)

    def to_wait(self) -> Seconds:
        """The minimum slack at which it pays to wait for this tier."""
        waits, _leaves = columns(self._model, self.terms, place_of(self.age))
        return slack_at(knot_of(self.remaining), self.weights, waits)

    def to_leave(self) -> Seconds:
        """The minimum slack at which it pays to leave on-demand for this tier."""
        _waits, leaves = columns(self._model, self.terms, place_of(self.age))
        return slack_at(knot_of(self.remaining), self.weights, leaves)

    def life(self, age: Seconds) -> Seconds:
        """The expected life of the tier's capacity from this age on."""
        return expected_life(self._model, self.weights, age)

    @property
    def view(self) -> TierView:
        """The view of the job."""
        return self._net.view

    @property
    def price(self) -> float:
        """USD per node-hour for which a move counts: the price now, or the mean of those that the tier has had if that
        is higher, so that a short drop of the price moves no job."""
        prices = self.tier.prices
        return max(price_of(self.tier), mean_price(prices, self._net.view.now)) if prices else price_of(self.tier)

    @property
    def outlook(self) -> TierOutlook:
        """What is known of the tier now."""
        return self._net.view.outlook(self.tier.name)

    @property
    def extra(self) -> float:
        """The costs of a move to this tier beside the nodes of its start, in USD per node times 3600."""
        return _per_node(self._net.view, self.outlook.move.total)

    @property
    def granted_at(self) -> Instant | None:
        """When another job got capacity on this tier; None if this job has observed the tier since."""
        granted, newest = self.outlook.granted_at, self.newest
        return None if granted is None or (newest is not None and newest.until >= granted) else granted

    @property
    def may_try(self) -> bool:
        """Whether the job may leave its capacity for this tier although it does not know whether the tier has any: not
        within RETURN_INTERVAL of its newest observation of the tier. The job tries a tier that it has not observed only
        after another job got capacity there."""
        if self.outlook.capacity is not None or not self._net.may_start(self.tier):
            return False
        if self.newest is None:
            return self.granted_at is not None
        return self.seen_ago >= RETURN_INTERVAL - EXACT

    def chance(self) -> float:
        """The probability that the tier has capacity now: at most its long-run share after an outage, at least that
        after another job got capacity there."""
        model, zones, newest, now = self._model, self.weights, self.newest, self._net.view.now
        share: float = sum(map(mul, zones, model.shares))
        if (granted := self.granted_at) is not None:
            reached = survivals(model, True, 1 + ticks_between(granted, now))
            stays: float = sum(map(mul, zones, map(math.exp, reached)))
            return share + (1.0 - share) * stays
        if newest is None or newest.available:
            return share
        seen = self._ticks
        ago = seen + ticks_between(newest.until, now)
        before, until = survivals(model, False, seen), survivals(model, False, ago)
        lasts = sum(weight * math.exp(log - old) for weight, log, old in zip(zones, until, before, strict=True))
        return share * (1.0 - lasts)

    def saves(self, source: Tier, age: Seconds) -> float:
        """The expected saving of capacity of this age on this tier over `source`, less the start and the costs of the
        move, in USD per node times 3600. If the capacity does not last, the job pays for the egress of a return."""
        lasts, price = min(self.life(age), self.remaining), self.price
        saves = (price_of(source) - price) * lasts - price * self.start - self.extra
        return saves - self._egress(source) if lasts < self.remaining else saves

    def pays(self, source: Tier) -> bool:
        """Whether a move from `source`, or a start here instead of there, saves more than the costs that the model does
        not include. True if a price is unknown."""
        if not (self.extra and self.tier.price.known and source.price.known):
            return True
        view = self._net.view
        there = 0.0 if view.live else self._egress(source) + start_of(view, source) * price_of(source)
        return self.saves(source, self.age) + there > 0.0

    def gain_of_try(self, source: Tier) -> float:
        """The expected saving of a try to move from `source` to this tier, in USD per node times 3600. The cost of one
        more start there is subtracted as hysteresis. A try that fails costs a restart on `source` and the lost work,
        but nothing if the job trains until the attempt here is ready. At most 0 if a price is unknown."""
        view, outlook = self._net.view, self.outlook
        if not (self.tier.price.known and source.price.known):
            return 0.0
        chance, again = self.chance(), start_of(view, source) * price_of(source) + self._egress(source)
        failed = 0.0 if outlook.overlaps else again + _per_node(view, outlook.move.lost_work)
        return chance * self.saves(source, 0.0) - (1.0 - chance) * failed - again

    @property
    def until_ready(self) -> Seconds:
        """The duration of a start on the tier, with the usual wait of all jobs for its nodes."""
        return max(self.start, self.tier.wait)

    @property
    def longest_try(self) -> Seconds:
        """The longest time without progress because of a try that fails."""
        view, fallback = self._net.view, self._net.fallback
        if self.outlook.overlaps:
            return self.until_ready
        return self.start + start_of(view, fallback or self.tier) + self.tier.provision_timeout

    def _egress(self, source: Tier) -> float:
        """The egress of a start on this other tier, in USD per node times 3600."""
        return _per_node(self._net.view, self._net.view.outlook(source.name).move.egress)

    def review_at(self) -> Instant:
        """The next moment at which the model's answers may change: when the age of the newest spell, or the time since
        its last observation, has grown by a tick."""
        newest, now = self.newest, self._net.view.now
        if newest is None:
            return math.inf if self.outlook.capacity is not None else now + RETURN_INTERVAL
        older = next_tick(newest.since, now)
        return older if newest.until == now else min(older, next_tick(newest.until, now))


def _ratio(net: SafetyNet, price: Price) -> float:
    """The ratio of the on-demand price to this price of a spot tier."""
    fallback = net.fallback
    if fallback is None or not (price.known and fallback.price.known and price.per_node_hour > 0):
        return USUAL_RATIO
    return fallback.price.per_node_hour / price.per_node_hour


def _per_node(view: TierView, usd: float) -> float:
    """These costs of the whole job in USD per node times 3600."""
    return usd * HOUR / view.workers if usd else 0.0


def start_of(view: TierView, tier: Tier) -> Seconds:
    """The duration of a start on a tier."""
    return view.outlook(tier.name).overhead or START
