"""The status of CapacityTiers where the installed CRD is older than the controller: the API server drops new fields."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from spotladder.clusters.transport import Object
from spotladder.core.reasons import Reason
from spotladder.operator.reporting.tier_status import WRITE_INTERVAL
from tests.operator.reporting.test_tier_status import TierStatusScene, scene

OLDER = "the CRD of CapacityTiers is older than this controller: upgrade the chart spotladder-crds"


class OlderCrd:
    """Drops these fields of each status that is written, and counts the requests."""

    def __init__(self, here: TierStatusScene, monkeypatch: pytest.MonkeyPatch, *dropped: str) -> None:
        self.dropped = dropped
        self.requests = 0
        self._merge = here.client.merge
        monkeypatch.setattr(here.client, "merge", self._pruned)

    async def _pruned(self, *given: Any, body: Object, **more: Any) -> Object:
        self.requests += 1
        kept = {name: value for name, value in body["status"].items() if name not in self.dropped}
        return await self._merge(*given, body={**body, "status": kept}, **more)


async def test_a_status_of_which_fields_are_dropped_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    here = await scene()
    crd = OlderCrd(here, monkeypatch, "prices")
    with capture_logs() as logs:
        for _ in range(5):
            await here.status()
            await here.clock.advance(WRITE_INTERVAL)
    assert crd.requests == 1
    assert [(log["event"], log["dropped"]) for log in logs] == [(OLDER, ["prices"])]


async def test_changes_of_other_fields_are_still_written_and_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    here = await scene()
    crd = OlderCrd(here, monkeypatch, "prices", "lastAvailableAt")
    with capture_logs() as logs:
        for attempts in range(1, 4):
            here.decided(Reason.STARTED, Reason.ALL_READY)
            assert (await here.status()).attempts == attempts
    assert crd.requests == 3
    assert [log["dropped"] for log in logs] == [["lastAvailableAt", "prices"]]


async def test_fields_are_kept_after_an_upgrade_of_the_crd(monkeypatch: pytest.MonkeyPatch) -> None:
    here = await scene()
    crd = OlderCrd(here, monkeypatch, "prices")
    assert (await here.status()).prices == []
    crd.dropped = ()
    here.decided(Reason.STARTED)
    assert [entry.price for entry in (await here.status()).prices] == ["1.0000"]
    await here.tier("other")
    requests = crd.requests
    await here.status()
    assert crd.requests == requests + 1
    await here.status()
    assert crd.requests == requests + 1, "nothing has changed"
