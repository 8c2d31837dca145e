"""Machines without power or network, at Kubernetes' own timeouts: it marks a silent node after 40 to 50 s."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from tests.e2e.losses import EVERY_MACHINE, SILENT_LOSSES, SPOT, MachineLoss, lose
from tests.e2e.site import E2eSite, installed
from tests.e2e.world import HEADS

GOAL = 55.0
"""Maximum seconds from the last step before the loss to the first new step."""

SEEN_RENEWING = 20.0
"""Seconds after which the controller has seen the Leases of new nodes renewed."""


@pytest.fixture(scope="module")
def stock(tag: str) -> Iterator[E2eSite]:
    """A cluster of its own, with Kubernetes' own timeouts."""
    if "silence" not in os.environ.get("SPOTLADDER_REQUIRE", "").split(","):
        pytest.skip("starts a cluster with Kubernetes' own timeouts: SPOTLADDER_REQUIRE=silence")
    with installed("silence", tag, "kuberay", stock_timeouts=True) as made:
        yield made


@pytest.mark.parametrize("loss", SILENT_LOSSES, ids=[loss.name.replace(" ", "-") for loss in SILENT_LOSSES])
def test_a_silent_loss_costs_less_than_a_minute(stock: E2eSite, loss: MachineLoss) -> None:
    with stock.world() as e2e:
        e2e.heads(1 + loss.spare(HEADS))
        e2e.pool(SPOT, 2 + loss.spare(SPOT))
        e2e.submit({"name": SPOT, "maxFailures": -1}, program="chain.py --steps 100000")
        e2e.runs(SPOT)
        time.sleep(SEEN_RENEWING)
        seen = lose(e2e, loss)
        print(seen)
        assert seen.pause <= GOAL, f"{seen}\n{e2e.picture()}"
        assert seen.again <= loss.again, seen
        if loss.pools == EVERY_MACHINE:
            assert seen.next_attempt is not None, seen
        e2e.suspend()
        e2e.is_the_uninterrupted_result(steps=e2e.steps())
