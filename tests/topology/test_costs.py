"""The cost of an idle fleet, and per hour of a tier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spotladder_infra.costs import Rate, idle, rates
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


@pytest.mark.parametrize(
    ("option", "keys"),
    [
        ("replicateTo: us-west-2", 3),
        ("kmsKey: arn:aws:kms:us-east-1:123456789012:key/a", 1),
        ("kmsKey: arn:aws:kms:us-east-1:123456789012:key/a, replicateTo: us-west-2", 2),
    ],
)
def test_keys_of_buckets(option: str, keys: int, tmp_path: Path) -> None:
    """A replica has a key of its own; a bucket with your key has none."""
    fleet = fleet_file(tmp_path, ("cloud: aws, region: us-east-1}", f"cloud: aws, region: us-east-1, {option}}}")).fleet
    items = {item.what: (item.count, item.hourly) for item in idle(fleet, fleet.cluster("east"))}
    assert items["KMS keys"] == (keys, pytest.approx(keys / 730))


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
