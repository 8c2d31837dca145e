"""What happens in a soak and when: a pure function of the seed.

Both halves have the same kinds of losses and outages; in the second half, attackers are there, too. The leader is
killed at the beginning of a half, so that its memory can be followed for the rest of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.e2e import losses

SHORTEST = 20
"""Minimum duration in minutes: each half needs losses far from its outages."""

BUCKET_OUTAGE, ATTACK_INTERVAL = 100.0, 10.0
"""Seconds for which the bucket refuses all requests, and between two actions of the attackers."""

LOSSES = {loss.name: loss for loss in losses.LOSSES if loss.pools == (losses.SPOT,)}
LEADER_KILLED, API_SERVER_HANGS = "leader killed", "API server hangs"
BUCKET_REFUSES, BUCKET_ANSWERS, ATTACK = "bucket refuses", "bucket answers", "attack"


@dataclass(frozen=True, order=True)
class Disturbance:
    """`at` is in seconds after the start; `what` is one of the above; `choice`, from 0 to 1, chooses the victim."""

    at: float
    what: str
    choice: float = 0.0


def plan(seed: int, minutes: float) -> tuple[Disturbance, ...]:
    """Everything that happens, in order. Raises ValueError if the time is too short for the outages."""
    if minutes < SHORTEST:
        raise ValueError(f"{minutes:g} minutes are too short for a soak: give at least {SHORTEST}")
    dice, half = random.Random(seed), minutes * 30.0
    attacks = (Disturbance(half + number * ATTACK_INTERVAL, ATTACK) for number in range(int(half // ATTACK_INTERVAL)))
    return tuple(sorted([*_half(dice, 0.0, half), *_half(dice, half, half), *attacks]))


def _half(dice: random.Random, begin: float, length: float) -> Iterator[Disturbance]:
    yield Disturbance(begin + dice.uniform(0.02, 0.1) * length, LEADER_KILLED)
    yield Disturbance(begin + dice.uniform(0.2, 0.9) * length, API_SERVER_HANGS)
    refused = begin + dice.uniform(0.1, 0.6) * length
    yield Disturbance(refused, BUCKET_REFUSES)
    yield Disturbance(refused + BUCKET_OUTAGE, BUCKET_ANSWERS)
    at = begin
    while (at := at + dice.uniform(20, 40)) < begin + length - 60:
        yield Disturbance(at, dice.choice(list(LOSSES)), dice.random())
