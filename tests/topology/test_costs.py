"""The cost of an idle fleet, and per hour of a tier."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from spotladder_infra.costs import Rate, idle, rates
from spotladder_infra.live_prices import asked
from tests.topology.builders import fleet_file


def test_idle_eks(tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path).fleet
    items = {item.what: (item.count, item.hourly) for item in idle(fleet, fleet.cluster("east"))}
    assert items == {
        "control plane": (1, 0.10),
        "system nodes (m7i.large)": (2, pytest.approx(0.2016)),
        "system disks (50 GiB)": (2, pytest.approx(2 * 50 * 0.08 / 730)),
        "NAT gateways": (1, 0.045),
        "public addresses of NAT": (1, 0.005),
        "KMS keys": (2, pytest.approx(2 / 730)),
    }


def test_endpoints_and_gateways_of_every_zone(tmp_path: Path) -> None:
    network = ("network: {cidr: 10.0.0.0/16}", "network: {nat: per-zone, interfaceEndpoints: true}")
    fleet = fleet_file(tmp_path, network).fleet
    items = {item.what: (item.count, item.hourly) for item in idle(fleet, fleet.cluster("east"))}
    assert items["NAT gateways"] == (2, 0.09)
    assert items["interface endpoints"] == (16, pytest.approx(0.16))


def test_rates(tmp_path: Path) -> None:
    found = {rate.pool: rate for rate in rates(fleet_file(tmp_path).fleet)}
    disk: Any = pytest.approx(0.022 + 0.026, abs=0.0005)  # 200 GiB with 600 MiB/s
    assert found["g5-spot"] == Rate("g5-spot", "east", "spot", None, 1.006, disk)
    assert found["g5-on-demand"] == Rate("g5-on-demand", "east", "on-demand", 1.006, 1.006, disk)
    assert found["p5-reserved"] == Rate("p5-reserved", "east", "reserved", 31.46, None, disk)
    assert found["laptop-spot"] == Rate("laptop-spot", "laptop", "spot", 0.42, 1.006)


@pytest.mark.parametrize(
    ("options", "hourly"),
    [
        ("diskGiB: 100", 0.011 + 0.026),
        ("diskThroughput: 125", 0.022),
        ("diskThroughput: 1000", 0.022 + 0.055),
    ],
)
def test_disks_of_nodes(options: str, hourly: float, tmp_path: Path) -> None:
    """The figures of docs/pools.md: throughput above 125 MiB/s and the IOPS for it are charged as well."""
    fleet = fleet_file(tmp_path, ("      limits: {nodes: 16}", f"      {options}")).fleet
    found = {rate.pool: rate.disk for rate in rates(fleet)}
    assert found["g5-spot"] == pytest.approx(hourly, abs=0.0006)
    assert found["lab-gpu"] == 0


class PriceList:
    """AWS's price list and spot history; botocore checks the requests. `on_demand` is None where there is no price."""

    def __init__(self, on_demand: float | None = 1.05) -> None:
        self.on_demand = on_demand
        self.asked: list[str] = []

    def connect(self, service: str, region: str) -> Any:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        client = boto3.client(service, region_name=region, **keys)
        client.meta.events.register(f"before-call.{service}", self._answer)
        return client

    def _answer(self, model: Any, params: Any, **_: Any) -> Any:
        self.asked.append(model.name)
        if model.name == "GetProducts":
            dimension = {"unit": "Hrs", "pricePerUnit": {"USD": str(self.on_demand)}}
            product = {"terms": {"OnDemand": {"t": {"priceDimensions": {"d": dimension}}}}}
            return SimpleNamespace(status_code=200), {"PriceList": [json.dumps(product)] if self.on_demand else []}
        entries = [
            {"InstanceType": "g5.xlarge", "AvailabilityZone": zone, "SpotPrice": price, "Timestamp": datetime.now(UTC)}
            for zone, price in (("us-east-1a", "0.40"), ("us-east-1b", "0.50"))
        ]
        return SimpleNamespace(status_code=200), {"SpotPriceHistory": entries}


def test_prices_of_today(tmp_path: Path) -> None:
    fleet, prices = fleet_file(tmp_path).fleet, PriceList()
    live = asked(fleet, rates(fleet), prices.connect)
    assert live.unknown == ()
    found = {rate.pool: (rate.hourly, rate.on_demand) for rate in live.rates}
    assert found["g5-spot"] == (pytest.approx(0.45), 1.05)
    assert found["g5-on-demand"] == (1.05, 1.05)
    listed = {rate.pool: (rate.hourly, rate.on_demand) for rate in rates(fleet)}
    assert {name: found[name] for name in ("p5-reserved", "l4-spot", "lab-gpu")} == {
        name: listed[name] for name in ("p5-reserved", "l4-spot", "lab-gpu")
    }
    assert set(prices.asked) == {"GetProducts", "DescribeSpotPriceHistory"}


def test_a_price_of_the_file_wins(tmp_path: Path) -> None:
    priced = ("      limits: {nodes: 16}", '      price: {perNodeHour: "0.33"}')
    fleet = fleet_file(tmp_path, priced).fleet
    (found,) = [rate for rate in asked(fleet, rates(fleet), PriceList().connect).rates if rate.pool == "g5-spot"]
    assert (found.hourly, found.on_demand) == (0.33, 1.05)


def test_a_price_that_aws_does_not_have(tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path).fleet
    live = asked(fleet, rates(fleet), PriceList(None).connect)
    assert live.unknown[0] == "g5-spot: AWS has no on-demand price of g5.xlarge in us-east-1"
    assert list(live.rates) == rates(fleet)
