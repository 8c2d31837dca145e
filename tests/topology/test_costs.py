"""What a fleet costs while it is idle, and per hour of a tier."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder_infra.costs import Rate, idle, rates
from tests.topology.builders import fleet_file


def test_idle_eks(tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path).fleet
    items = {item.what: (item.count, item.hourly) for item in idle(fleet, fleet.cluster("east"))}
    assert items == {
        "control plane": (1, 0.10),
        "system nodes (m7i.large)": (2, pytest.approx(0.2016)),
        "NAT gateways": (1, 0.045),
        "KMS keys": (2, pytest.approx(2 / 730)),
    }


def test_endpoints_and_gateways_of_every_zone(tmp_path: Path) -> None:
    network = ("network: {cidr: 10.0.0.0/16}", "network: {nat: per-zone, interfaceEndpoints: true}")
    fleet = fleet_file(tmp_path, network).fleet
    items = {item.what: (item.count, item.hourly) for item in idle(fleet, fleet.cluster("east"))}
    assert items["NAT gateways"] == (2, 0.09)
    assert items["interface endpoints"] == (16, pytest.approx(0.16))


def test_an_unknown_instance_has_no_price(tmp_path: Path) -> None:
    system = ("    bucket: acme-east\n", "    bucket: acme-east\n    system: {instanceType: x9.large}\n")
    fleet = fleet_file(tmp_path, system).fleet
    assert idle(fleet, fleet.cluster("east"))[1].hourly is None


def test_rates(tmp_path: Path) -> None:
    found = {rate.pool: rate for rate in rates(fleet_file(tmp_path).fleet)}
    assert found["g5-spot"] == Rate("g5-spot", "east", "spot", None, 1.006)
    assert found["g5-on-demand"] == Rate("g5-on-demand", "east", "on-demand", 1.006, 1.006)
    assert found["p5-reserved"] == Rate("p5-reserved", "east", "reserved", 31.46, None)
    assert found["laptop-spot"] == Rate("laptop-spot", "laptop", "spot", 0.42, 1.006)
