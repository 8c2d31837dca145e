"""Shared rules of the deadline-aware policies: the spot tiers, the fallback tier, and when only the fallback may be
used.

Rules
 1. The fallback is the open tier that is not spot on which the live attempt is, or else the cheapest one. A tier that
    has just had no capacity comes after the others. Without such a tier, the fallback is the last open tier.
 2. The job may be off the fallback only while it can still finish there in time, if the policy is asked again after
    one decision interval, the job has made no progress until then, and its attempt takes the whole grace period to
    stop. Progress counts where capacity is known to last for the interval.
 3. An attempt on a spot tier starts only if rule 2 also covers that start, and the attempt can stay for as long as the
    start takes, LEAST_STAY at least. So the commit of a drained attempt does not bring the job back for seconds. Where
    capacity is known to last, the start is enough.
 4. An attempt that waits for spot capacity, and a job without one, moves to the fallback once rule 3 allows no start:
    nodes that came later would be left again at once, and the work on the fallback is the same. Where capacity is
    known to last, it waits as long as rule 2 allows.
 5. While the remaining work is unknown, it may need almost all of the time: a job waits for spot capacity, and starts
    on it, until it has spent WAIT_SHARE of the time from its submission to its deadline without training, and then
    moves to the fallback. Only training between commits counts. An attempt whose workers are ready stays: it trains.
 6. Rules 2 to 5 do not apply without a deadline.

Work that is not committed counts as remaining work, so a lost node never invalidates rule 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from spotladder.core.model import CapacityType, Instant, Seconds, Tier, TierChoice, TierOutlook, TierView


class SafetyNet:
    """The fallback of a view, and the slack for other tiers.

    `fallback` is the tier that finishes the job in time; None when no tier is open. `spot` are the other open tiers of
    spot capacity, cheapest first; the user's order among equal prices. `overhead` is that of a new attempt on the
    fallback, `reserve` the time that the job keeps for it. `slack` is the time until the deadline that is needed
    neither for the remaining work nor for the live attempt to stop; None without a deadline or a known remaining work.
    `latest` is the time by which the job must move to the fallback, unless it starts on another tier; None without a
    deadline, infinity while only a loss requires it. `wait_limit` is the time of rule 5; None if that rule does not
    apply. `has_capacity`: the live attempt runs, or its tier is not known to be without capacity. `on_fallback`: the
    live attempt is on the fallback.
    """

    __slots__ = (
        "fallback",
        "has_capacity",
        "latest",
        "on_fallback",
        "overhead",
        "reserve",
        "slack",
        "spot",
        "view",
        "wait_limit",
    )

    def __init__(self, view: TierView) -> None:
        self.view = view
        spot: list[Tier] = []
        steady: list[Tier] = []
        for tier in view.tiers:
            if tier.name in view.open:
                (spot if tier.capacity_type is CapacityType.SPOT else steady).append(tier)
        self.fallback = self._fallback(steady) if steady else spot.pop() if spot else None
        self.spot = tuple(sorted(spot, key=price_of) if len(spot) > 1 else spot)
        fallback, live = self.fallback, view.live and view.current in view.open
        start = view.outlook(fallback.name) if fallback else TierOutlook("")
        self.overhead: Seconds = start.overhead
        self.reserve: Seconds = start.overhead if start.reserve is None else start.reserve
        self.on_fallback = live and fallback is not None and view.current == fallback.name
        self.has_capacity = live and view.outlook(view.current).capacity is not False
        self.slack: Seconds | None = None
        self.latest: Instant | None = None
        self.wait_limit: Instant | None = None
        if view.deadline is not None:
            if view.remaining is not None:
                self.slack = view.deadline - view.now - view.remaining - view.grace
                self.latest = self._latest(self.slack)
            else:
                waits = WAIT_SHARE * (view.deadline - view.submitted_at)
                self.wait_limit = view.submitted_at + waits + view.trained
                trains = live and view.outlook(view.current).capacity is True
                self.latest = math.inf if trains else self.wait_limit

    def _latest(self, slack: Seconds) -> Instant:
        view = self.view
        # Where capacity lasts, each interval adds as much work as it takes time once the attempt has started.
        idle = min(view.interval, view.starting) if view.capacity_lasts and self.has_capacity else view.interval
        return view.now + slack - self.reserve - idle

    def _fallback(self, steady: Sequence[Tier]) -> Tier:
        return steady[0] if len(steady) == 1 else min(steady, key=self._preference)

    def _preference(self, tier: Tier) -> tuple[bool, bool, float]:
        """The sort key of the fallback tier, smallest first: a move between two similar tiers costs a start and saves
        little."""
        view = self.view
        lives = view.live and tier.name == view.current
        lacks = view.outlook(tier.name).capacity is False if lives else self._failed_recently(tier)
        return lacks, not lives, price_of(tier)

    @property
    def waiting(self) -> str | None:
        """The tier of a job that waits for spot capacity: that of its live attempt, which continues to wait."""
        return self.view.current if self.view.live and self.view.current in self.view.open else None

    @property
    def usable_spot(self) -> Tier | None:
        """The cheapest spot tier that has capacity now, or may have it."""
        return next((tier for tier in self.spot if self.may_start(tier)), None)

    def may_start(self, tier: Tier) -> bool:
        """Whether an attempt on this tier is worthwhile: the tier has capacity, or is not known to have none."""
        capacity = self.view.outlook(tier.name).capacity
        if tier.name not in self.view.available or capacity is False:
            return False
        until = self.start_until(tier)
        return (until is None or self.view.now <= until + EXACT) and (capacity or not self._failed_recently(tier))

    def start_until(self, tier: Tier) -> Instant | None:
        """The latest time at which an attempt may start on this spot tier; None without a limit."""
        view, outlook = self.view, self.view.outlook(tier.name)
        if self.slack is None:
            return self.wait_limit
        spare = self.slack - self.reserve - (0.0 if outlook.overlaps else outlook.overhead)
        if not view.capacity_lasts:
            spare -= view.interval + max(outlook.overhead, LEAST_STAY)
        return view.now + spare

    def _failed_recently(self, tier: Tier) -> bool:
        """Whether the tier had no capacity within RETRY_INTERVAL before now, or before the live attempt began to wait.
        So an attempt that waits makes one move to each other tier at most, and then waits for provisionTimeout."""
        since, retry_at = self.view.waiting_since, self._retry_at(tier)
        return retry_at is not None and (self.view.now if since is None else since) < retry_at

    def _retry_at(self, tier: Tier) -> Instant | None:
        """When the tier may be tried again after it had no capacity; None if it had capacity at last. The longer it has
        had none, the later, because an older outage is expected to last longer; but an attempt that waits for
        provisionTimeout has tried it all that time."""
        spells = self.view.spells(tier.name)
        if not spells or spells[-1].available:
            return None
        lasted = spells[-1].until - spells[-1].since
        apart = min(RETRY_SHARE * lasted, LONGEST_RETRY_INTERVAL)
        return spells[-1].until + max(RETRY_INTERVAL, apart - tier.provision_timeout)

    def choice(self, tier: str | None, why: str, review_at: Instant = math.inf) -> TierChoice:
        """The choice of this tier, to be reviewed by `review_at`, when only the fallback is left, and when a tier whose
        capacity is unknown may be tried again. It never exhausts its tier: these policies return to a tier that had no
        capacity."""
        on_fallback = self.fallback is not None and tier == self.fallback.name
        reviews = [review_at]
        if not on_fallback and self.latest is not None:
            reviews.append(self.latest + JUST_AFTER)
        if not self.certain:
            retries = [self._retry_at(tier) for tier in self.view.tiers]
            reviews += [at for at in retries if at is not None and at > self.view.now]
        if not on_fallback:
            ends = [self.start_until(tier) for tier in self.spot]
            reviews += [at + JUST_AFTER for at in ends if at is not None and at + JUST_AFTER > self.view.now]
        first = min(reviews)
        review = None if first == math.inf else first
        return TierChoice(tier, why, review, keeps_open=True)

    @property
    def certain(self) -> bool:
        """Whether the current capacity of every open tier is known."""
        return self.view.open.issubset([one.name for one in self.view.outlooks if one.capacity is not None])

    @property
    def hopeless(self) -> bool:
        """Whether waiting for spot capacity can only delay the end: the job has none, and it is too late to start an
        attempt there."""
        return bool(self.spot) and not self.view.capacity_lasts and not self.has_capacity and self.final

    @property
    def final(self) -> bool:
        """Whether no spot attempt may start any more. It stays so on the fallback, where slack never grows."""
        ends = [self.start_until(tier) for tier in self.spot]
        return all(at is not None and self.view.now > at + EXACT for at in ends)

    @property
    def late(self) -> bool:
        """Whether it is too late to wait, or to keep the live attempt off the fallback."""
        return self.latest is not None and self.view.now > self.latest + EXACT

    @property
    def why_forced(self) -> str:
        """Why only the fallback may be used, for users."""
        if self.wait_limit is not None:
            return "the job has no spot capacity, and how much work it has is unknown"
        return "only on-demand can still meet the deadline"

    @property
    def forced(self) -> bool:
        """Whether only the fallback can still meet the deadline."""
        if self.on_fallback:
            return bool(self.spot) and self.final
        return (self.late or self.hopeless) and self.usable_spot is None


RETRY_INTERVAL: Seconds = 60.0
"""Minimum time for which a tier that had no capacity is assumed to have none, without newer information."""

RETRY_SHARE = 0.5
"""The share of the length of an outage that lies between the starts of two attempts on its tier."""

LONGEST_RETRY_INTERVAL: Seconds = 600.0
"""The longest time between the starts of two attempts on a tier without capacity, if provisionTimeout is shorter."""

LEAST_STAY: Seconds = 180.0
"""Shortest time on spot capacity for which a start is worthwhile near the deadline, if the overhead is unknown."""

WAIT_SHARE = 0.125
"""The share of the time from the submission to the deadline that a job whose work is unknown may spend without training
before it moves to the fallback. So it meets every deadline that leaves the work seven eighths of that time."""

EXACT: Seconds = 1e-6
"""Tolerance for the rounding of sums of times."""


JUST_AFTER: Seconds = 4 * EXACT
"""Added to a limit that must be exceeded, so that the next review comes right after the limit."""


def price_of(tier: Tier) -> float:
    """USD per node-hour; infinity if unknown."""
    return tier.price.per_node_hour if tier.price.known else float("inf")
