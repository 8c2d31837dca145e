"""`adaptive`: waits for spot capacity while the expected cost of waiting is lower than that of starting on demand.

The model is fitted offline to availability traces by tests/bench/fit_adaptive.py. For each zone of the traces it has
the hazard rates of losing and of regaining capacity, by the age of the availability spell. Backward induction over
remaining time and remaining work gives the minimum slack at which it pays to wait for spot capacity, or to leave
on-demand for it. Slack is the remaining time minus the remaining work.

Rules
 1. Safety net: use only the fallback once no other tier can meet the deadline.
 2. Use the available spot capacity with the lowest price of useful time, until it is lost. Move to a cheaper spot tier
    that is known to have capacity if the lower price, over the time for which the model expects that capacity to last,
    saves more than the overheads of two starts and the egress and lost work of the move, and if there is slack for one
    start and for another wait.
 3. Without spot capacity, wait while the slack is at least `wait`; else on-demand.
 4. From on-demand, move to spot capacity that is known to be available while the slack is at least `leave`. If the job
    trains until the spot attempt is ready, the capacity need not be known. Otherwise, from on-demand or from a dearer
    spot tier, try a spot tier whose capacity is unknown when the probability that it is back makes the try pay, at most
    every RETURN_INTERVAL, and while the slack also covers a try that fails. Capacity that another job got since the
    job's own newest observation makes it probable.
 5. The zones of the model are weighted by the likelihood of the spells that the job observed on the tier, and of those
    that all jobs had observed there before its first attempt. If a memoryless model explains the job's own spells
    clearly better than every zone, the choice is that of `uniform-progress`.
 6. Spot capacity that, for as long as it is expected to last, saves less than the egress and the lost work of a move to
    it costs is not used: the model has only the overhead of starts.
 7. If the rest of the job fits into its budget on a spot tier but not on-demand, wait for such a tier, or leave others
    for it, whatever the model expects, until rule 1 applies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter

from spotladder.core.accounting import HOUR
from spotladder.core.durations import format_duration
from spotladder.core.model import NO_MOVE_COSTS, Instant, Seconds, Tier, TierChoice, TierView
from spotladder.core.policies.adaptive_budget import within_budget
from spotladder.core.policies.adaptive_prospects import Prospect
from spotladder.core.policies.adaptive_tables import Model
from spotladder.core.policies.safety_net import EXACT, JUST_AFTER, SafetyNet, price_of
from spotladder.core.policies.uniform_progress import UniformProgress


class Adaptive:
    """Without a deadline, or while the remaining work is unknown, it chooses as `uniform-progress` does.

    `model` is the fitted model: `policies.registry` passes the model of the package, and a benchmark passes a
    model that was fitted without the tested zone.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def choose(self, view: TierView) -> TierChoice:
        """The tier to use, or None to wait for spot capacity."""
        net = SafetyNet(view)
        slack = net.slack
        if slack is None or net.forced or not net.spot or net.fallback is None:
            return UniformProgress().choose(view)
        if view.budget is not None and (within := within_budget(net)):
            return self._in_budget(net, slack, within)
        if net.on_fallback:
            return self._from_fallback(net, slack)
        if net.has_capacity:
            return self._from_spot(net, slack)
        spot = net.spot
        if _with_egress(view):
            spot = tuple(tier for tier in spot if Prospect(self.model, net, tier).pays(net.fallback))
            if not spot:
                return net.choice(net.fallback.name, f"no spot tier saves more than {_cost_of(view, net.spot[0].name)}")
        if usable := [tier for tier in spot if net.may_start(tier)]:
            best = usable[0]
            if len(usable) > 1:
                best = min([Prospect(self.model, net, tier) for tier in usable], key=_useful_price).tier
            return net.choice(best.name, "spot capacity may be available")
        prospects = [Prospect(self.model, net, tier) for tier in spot]
        if not _trusted(prospects):
            return _of_uniform_progress(view, prospects)
        needed = min([one.to_wait() for one in prospects])
        if slack < needed - EXACT:
            why = f"no spot capacity, and waiting needs {_rounded(needed)} of slack, {_rounded(slack)} are left"
            return net.choice(net.fallback.name, why, _review_at(prospects))
        why = f"waits for spot capacity: {_rounded(slack)} of slack are left, {_rounded(needed)} needed"
        return net.choice(net.waiting, why, min(_review_at(prospects), view.now + slack - needed + JUST_AFTER))

    def _in_budget(self, net: SafetyNet, slack: Seconds, within: tuple[Tier, ...]) -> TierChoice:
        """Use one of these spot tiers, on which the rest of the job fits into its budget. From another tier, move if
        the capacity is known or the slack covers a try that fails."""
        view = net.view
        trains = net.on_fallback or net.has_capacity
        if trains and any(tier.name == view.current for tier in within):
            return self._from_spot(net, slack)
        prospects = [Prospect(self.model, net, tier) for tier in within]
        startable = [one for one in prospects if net.may_start(one.tier)]
        if trains:
            startable = [
                one
                for one in startable
                if one.outlook.capacity or one.outlook.overlaps or (one.may_try and slack >= one.longest_try)
            ]
        if startable:
            best = min(startable, key=_useful_price)
            return net.choice(
                best.tier.name, f"the rest of the job fits into the budget of {view.budget:.10g} USD there"
            )
        why = f"no tier with capacity is cheap enough to finish the job within the budget of {view.budget:.10g} USD"
        return net.choice(view.current if trains else net.waiting, why, _review_at(prospects))

    def _from_spot(self, net: SafetyNet, slack: Seconds) -> TierChoice:
        """Keep the spot tier of the live attempt, or move to a cheaper one if that pays."""
        view = net.view
        kept = net.choice(view.current, "the job stays on spot until it is lost")
        source = next((tier for tier in net.spot if tier.name == view.current), None)
        cheaper = [] if source is None else [tier for tier in net.spot if price_of(tier) < price_of(source)]
        if source is None or not cheaper:
            return kept
        startable = [tier for tier in cheaper if net.may_start(tier)]
        candidates = [tier for tier in startable if view.outlook(tier.name).capacity]
        if not candidates and (not startable or net.certain):
            return kept
        prospects = [Prospect(self.model, net, tier) for tier in net.spot]
        kept = kept.reviewed_by(_review_at(prospects))
        if not _trusted(prospects):
            return kept
        if candidates:
            best = min([one for one in prospects if one.tier in candidates], key=_useful_price)
            name, price, cheap = best.tier.name, price_of(source), best.price
            lasts = min(best.life(best.age), best.remaining)
            saves = (price - cheap) * lasts > (price + cheap) * best.start + best.extra
            if saves and slack - best.until_ready >= best.to_wait():
                costs = _balance(best, source)
                return net.choice(name, f"{name} is cheaper, and is expected to last for {_rounded(lasts)}{costs}")
        # A job that leaves its capacity for a tier without any returns: the tier must be the better one then, too.
        least = min([_useful_price(one) for one in prospects if one.tier is source])
        tries = [
            one for one in prospects if one.tier in cheaper and (one.outlook.overlaps or _useful_price(one) < least)
        ]
        return self._tried(net, slack, source, tries) or kept

    def _from_fallback(self, net: SafetyNet, slack: Seconds) -> TierChoice:
        """Leave on-demand for spot capacity that is known to be available, if the slack covers the risk of
        losing it."""
        view = net.view
        known = [tier for tier in net.spot if view.outlook(tier.name).overlaps or view.outlook(tier.name).capacity]
        candidates = [tier for tier in known if net.may_start(tier)]
        if not candidates:
            return self._without_known_capacity(net, slack)
        prospects = [Prospect(self.model, net, tier) for tier in net.spot]
        if not _trusted(prospects):
            return _of_uniform_progress(view, prospects)
        usable = [(one.to_leave(), one) for one in prospects if one.tier in candidates]
        source = net.fallback or candidates[0]
        if not (paying := [entry for entry in usable if entry[1].pays(source)]):
            why = f"a return to spot does not pay{_balance(usable[0][1], source)}"
            return net.choice(view.current, why, _review_at(prospects))
        needed, best = min(paying, key=itemgetter(0))
        if slack < needed - EXACT:
            why = f"leaving on-demand needs {_rounded(needed)} of slack, {_rounded(slack)} are left"
            return net.choice(view.current, why, _review_at(prospects))
        found = "is available" if view.outlook(best.tier.name).capacity else "may be available"
        why = f"spot capacity {found} and {_rounded(slack)} of slack are left" + _balance(best, source)
        return net.choice(best.tier.name, why, min(_review_at(prospects), view.now + slack - needed + JUST_AFTER))

    def _without_known_capacity(self, net: SafetyNet, slack: Seconds) -> TierChoice:
        """Stay on on-demand, or try a spot tier whose capacity is unknown."""
        view = net.view
        stays = net.choice(view.current, "no spot capacity is known to be available")
        if net.certain or net.fallback is None:
            return stays
        prospects = [Prospect(self.model, net, tier) for tier in net.spot]
        if not _trusted(prospects):
            return stays
        return self._tried(net, slack, net.fallback, prospects) or stays.reviewed_by(_review_at(prospects))

    def _tried(self, net: SafetyNet, slack: Seconds, source: Tier, prospects: Sequence[Prospect]) -> TierChoice | None:
        """The choice of a tier whose capacity is unknown, if leaving `source` for it is expected to pay and the slack
        covers a try that fails."""
        gains = [(gain, one) for one in prospects if one.may_try and (gain := one.gain_of_try(source)) > 0]
        if not gains:
            return None
        _gain, best = max(gains, key=itemgetter(0))
        if slack - best.longest_try < best.to_leave():
            return None
        why = f"spot capacity is back with a probability of {100 * best.chance():.0f} %"
        if best.granted_at is not None:
            ago = _rounded(net.view.now - best.granted_at)
            why = f"another job got capacity on {best.tier.name} {ago} ago, {100 * best.chance():.0f} % that it lasts"
        return net.choice(best.tier.name, why + _balance(best, source))


def _trusted(prospects: Sequence[Prospect]) -> bool:
    return all(one.trusted for one in prospects)


def _review_at(prospects: Sequence[Prospect]) -> Instant:
    return min([one.review_at() for one in prospects])


def _of_uniform_progress(view: TierView, prospects: Sequence[Prospect]) -> TierChoice:
    """The choice of `uniform-progress`, until the model may be trusted again."""
    return UniformProgress().choose(view).reviewed_by(_review_at(prospects))


def _useful_price(prospect: Prospect) -> tuple[float, float]:
    """USD per node and hour of training on this tier, with the overhead of a start and the costs of a move spread over
    the expected life of the capacity, and the price of the tier as the second key."""
    price, start = price_of(prospect.tier), prospect.overhead
    useful = prospect.life(prospect.age) - start
    return (price * (useful + start) + prospect.extra) / useful if useful > 0 else math.inf, price


def _with_egress(view: TierView) -> bool:
    """Whether a start on some tier costs egress."""
    return any(one.move.egress for one in view.outlooks if one.move is not NO_MOVE_COSTS)


def _balance(prospect: Prospect, source: Tier) -> str:
    """`; moving costs 1.20 USD of egress, saves 3.10 USD`; "" if a move costs nothing beside the start."""
    view = prospect.view
    if not (prospect.extra and prospect.tier.price.known and source.price.known):
        return ""
    lasts = min(prospect.life(prospect.age), prospect.remaining)
    saves = (price_of(source) - price_of(prospect.tier)) * lasts * view.workers / HOUR
    return f"; moving costs {_cost_of(view, prospect.tier.name)}, saves {saves:.2f} USD"


def _cost_of(view: TierView, name: str) -> str:
    """`1.20 USD of egress and 0.30 USD of lost work`."""
    move = view.outlook(name).move
    parts = ((move.egress, "egress"), (move.lost_work, "lost work"))
    return " and ".join(f"{usd:.2f} USD of {what}" for usd, what in parts if usd)


def _rounded(seconds: Seconds) -> str:
    return format_duration(max(0, round(seconds / 60.0)) * 60.0)
