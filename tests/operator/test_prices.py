"""Price lookups: they never block the reconciler, and an unknown price is not zero."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from spotladder import price_sources
from spotladder.api.capacitytier import CapacityTierSpec, PriceSource
from spotladder.core.model import Price
from spotladder.errors import EnvironmentFailure
from spotladder.operator.prices import PRICE_TTL, RETRY, Prices
from spotladder.price_sources import PriceUnknown
from tests.clusters.stepped_clock import SteppedClock
from tests.workloads.builders import capacity


def near(value: float) -> Any:
    return pytest.approx(value)


AWS = {
    "provider": "aws", "region": "us-east-1", "instanceTypes": ["g5.xlarge"], "capacityType": "spot",
    "price": {"source": "aws"},
}  # fmt: skip


class FakePriceSource:
    """A fake price source with a configured answer, returned once `gate` is open."""

    def __init__(self, answer: Price | Exception) -> None:
        self.answer, self.asked, self.gate = answer, 0, threading.Event()
        self.gate.set()

    def __call__(self, _spec: CapacityTierSpec) -> Price:
        self.asked += 1
        assert self.gate.wait(600)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def until(what: Any) -> None:
    for _ in range(2000):
        if what():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("not true in time")


async def test_a_price_lookup_does_not_block_and_its_result_triggers_a_reconcile() -> None:
    fake, changes, clock = FakePriceSource(Price(0.4, 1.0)), list[str](), SteppedClock()
    fake.gate.clear()
    async with Prices({PriceSource.AWS: fake}, clock=clock, changed=lambda: changes.append("news")) as prices:
        tier = capacity(**AWS)
        assert prices.of(tier) == Price(known=False)
        assert prices.problem(tier) == "is being looked up"
        prices.of(tier)
        fake.gate.set()
        await until(lambda: changes)
        assert prices.of(tier) == Price(0.4, 1.0)
        assert (fake.asked, prices.problem(tier)) == (1, "")
        fake.answer = Price(0.5, 1.0)
        await clock.advance(PRICE_TTL)
        assert prices.of(tier) == Price(0.4, 1.0)  # the old price until the new one is known
        await until(lambda: len(changes) == 2)
        assert prices.of(tier) == Price(0.5, 1.0)


async def test_a_price_lookup_takes_no_thread_from_the_tokens_of_member_clusters() -> None:
    fake = FakePriceSource(Price(0.4, 1.0))
    fake.gate.clear()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    async with Prices({PriceSource.AWS: fake}, clock=SteppedClock(), changed=lambda: None) as prices:
        prices.of(capacity(**AWS))
        await until(lambda: fake.asked)
        try:
            async with asyncio.timeout(10):
                await asyncio.to_thread(lambda: None)
        finally:
            fake.gate.set()


@pytest.mark.parametrize(
    ("error", "says"), [(PriceUnknown("no such type"), "no such type"), (KeyError("terms"), "KeyError: 'terms'")]
)
async def test_a_failed_price_lookup_leaves_the_price_unknown_and_is_retried(error: Exception, says: str) -> None:
    fake, changes, clock = FakePriceSource(error), list[str](), SteppedClock()
    async with Prices({PriceSource.AWS: fake}, clock=clock, changed=lambda: changes.append("news")) as prices:
        tier = capacity(**AWS)
        prices.of(tier)
        await until(lambda: changes)
        assert prices.of(tier) == Price(known=False)
        assert prices.problem(tier) == says
        fake.answer = Price(0.4, 1.0)
        await clock.advance(RETRY)
        prices.of(tier)
        await until(lambda: len(changes) == 2)
        assert prices.of(tier) == Price(0.4, 1.0)


# --- AWS: responses validated against boto3's service models ---------------------------------------------------------


def product(*prices: str) -> str:
    dimensions = {str(index): {"unit": "Hrs", "pricePerUnit": {"USD": price}} for index, price in enumerate(prices)}
    return json.dumps({"terms": {"OnDemand": {"term": {"priceDimensions": dimensions}}}})


class Aws:
    """boto3 clients with stubbed responses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        self.clients = {service: boto3.client(service, region_name="us-east-1") for service in ("ec2", "pricing")}
        self.stubs = {service: Stubber(client) for service, client in self.clients.items()}
        for stub in self.stubs.values():
            stub.activate()

    def lists(self, *products: str) -> None:
        expected = {"ServiceCode": "AmazonEC2", "Filters": ANY}
        self.stubs["pricing"].add_response("get_products", {"PriceList": list(products)}, expected)

    def history(self, *entries: tuple[str, str, int], zones: list[str] | None = None) -> None:
        found = [
            {
                "InstanceType": "g5.xlarge", "AvailabilityZone": zone, "SpotPrice": price,
                "Timestamp": datetime(2026, 11, 21, hour, tzinfo=UTC),
            }
            for zone, price, hour in entries
        ]  # fmt: skip
        filters = [{"Name": "availability-zone", "Values": zones}] if zones else []
        expected = {
            "InstanceTypes": ["g5.xlarge"], "ProductDescriptions": ["Linux/UNIX"], "StartTime": ANY, "Filters": filters,
        }  # fmt: skip
        self.stubs["ec2"].add_response("describe_spot_price_history", {"SpotPriceHistory": found}, expected)

    def price(self, **more: Any) -> Price:
        return price_sources.aws(capacity(**{**AWS, **more}).spec, lambda service, _region: self.clients[service])


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Aws:
    return Aws(monkeypatch)


def test_the_spot_price_is_the_mean_of_the_newest_price_of_each_zone(cloud: Aws) -> None:
    cloud.lists(product("1.006", "0.0"))
    cloud.history(("us-east-1a", "0.50", 8), ("us-east-1a", "0.40", 11), ("us-east-1b", "0.60", 10))
    assert cloud.price() == Price(near(0.5), near(1.006))


def test_only_spot_prices_in_the_zones_of_the_tier_are_requested(cloud: Aws) -> None:
    cloud.lists(product("1.0"))
    cloud.history(("us-east-1b", "0.60", 10), zones=["us-east-1b"])
    assert cloud.price(zones=["us-east-1b"]).per_node_hour == pytest.approx(0.6)


def test_the_price_of_an_on_demand_tier_equals_its_on_demand_price(cloud: Aws) -> None:
    cloud.lists(product("1.006"))
    assert cloud.price(capacityType="on-demand") == Price(1.006, 1.006)


def test_missing_prices_and_errors_of_aws_are_reported_with_their_cause(cloud: Aws) -> None:
    with pytest.raises(PriceUnknown, match=r"needs spec\.region and spec\.instanceTypes"):
        cloud.price(instanceTypes=[])
    with pytest.raises(PriceUnknown, match="in your contract"):
        cloud.price(capacityType="reserved")
    cloud.lists()
    with pytest.raises(PriceUnknown, match=r"no on-demand price of g5\.xlarge in us-east-1"):
        cloud.price()
    cloud.lists(product("1.0"))
    cloud.history()
    with pytest.raises(PriceUnknown, match=r"no spot price of g5\.xlarge"):
        cloud.price()
    cloud.stubs["pricing"].add_client_error("get_products", "AccessDeniedException", "not authorized")
    with pytest.raises(EnvironmentFailure, match="not authorized"):
        cloud.price()


# --- price table -----------------------------------------------------------------------------------------------------


def test_prices_are_read_from_a_table(tmp_path: Path) -> None:
    rows = {"g2-standard-4": {"spot": 0.2, "on-demand": "0.7"}, "g2-standard-8": {"spot": 0.4, "on-demand": 1.1}}
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"us-central1": rows}))

    def price(**more: Any) -> Price:
        spec = {"provider": "gcp", "region": "us-central1", "capacityType": "spot", "instanceTypes": list(rows)}
        return price_sources.table(capacity(**{**spec, "price": {"source": "gcp", "table": str(file)}, **more}).spec)

    assert price() == Price(near(0.3), near(0.9))
    assert price(capacityType="on-demand", instanceTypes=["g2-standard-4"]) == Price(0.7, 0.7)
    for wrong, said in (
        ({"region": "mars-1"}, "has no 'mars-1'"),
        ({"instanceTypes": []}, "^price.source gcp needs spec.region and spec.instanceTypes$"),
        ({"region": None}, "^price.source gcp needs spec.region and spec.instanceTypes$"),
        ({"price": {"source": "gcp", "table": str(tmp_path / "none.json")}}, "does not exist"),
    ):
        with pytest.raises(PriceUnknown, match=said):
            price(**wrong)
    file.write_text("[")
    with pytest.raises(PriceUnknown, match="not a table of prices"):
        price()
    for number in ("NaN", "1e999", "-0.2"):  # Python writes and reads NaN; a cost of NaN cannot be stored.
        file.write_text(json.dumps({"us-central1": rows}).replace("0.2", number))
        with pytest.raises(PriceUnknown, match="not a table of prices: expected prices of 0 or more"):
            price()
