"""Sources of node prices: AWS's price history and price list, and a table for clouds without a price API.

A tier with several instance types or zones may get any of them: its price is their mean.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

from spotladder.api.capacitytier import CapacityTierSpec, PriceSource
from spotladder.core.model import CapacityType, Price
from spotladder.errors import EnvironmentFailure, SpotladderError

PRICE_LIST_REGION = "us-east-1"
"""One of the few regions that AWS's price list is served from; it knows the prices of all."""

Connect = Callable[[str, str], Any]
"""A client of boto3, for a service in a region."""


class PriceUnknown(SpotladderError):
    """The source has no such price."""

    exit_code = 5


def sources() -> Mapping[PriceSource, Callable[[CapacityTierSpec], Price]]:
    """The sources that CapacityTiers may name."""
    return {PriceSource.AWS: lambda spec: aws(spec, _boto3), PriceSource.GCP: table}


def aws(spec: CapacityTierSpec, connect: Connect) -> Price:
    """Linux nodes at the newest spot price of each zone, and on demand. Needs ec2:DescribeSpotPriceHistory and
    pricing:GetProducts. Raises PriceUnknown, EnvironmentFailure."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 – only where AWS is asked

    if not spec.region or not spec.instance_types:
        raise PriceUnknown("price.source aws needs spec.region and spec.instanceTypes")
    if spec.capacity_type is CapacityType.RESERVED:
        raise PriceUnknown("the price of reserved capacity is in your contract: set price.perNodeHour")
    try:
        on_demand = fmean(_aws_on_demand(connect("pricing", PRICE_LIST_REGION), spec.region, spec.instance_types))
        if spec.capacity_type is CapacityType.ON_DEMAND:
            return Price(on_demand, on_demand)
        return Price(fmean(_aws_spot(connect("ec2", spec.region), spec)), on_demand)
    except (BotoCoreError, ClientError) as error:
        raise EnvironmentFailure(f"AWS: {error}") from None


def _aws_spot(client: Any, spec: CapacityTierSpec) -> list[float]:
    """The newest price of each type in each zone."""
    zones = [{"Name": "availability-zone", "Values": spec.zones}] if spec.zones else []
    newest: dict[tuple[str, str], tuple[datetime, float]] = {}
    pages = client.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=spec.instance_types,
        ProductDescriptions=["Linux/UNIX"],
        StartTime=datetime.now(UTC),  # the prices that are valid now, not those of three months
        Filters=zones,
    )
    for page in pages:
        for entry in page["SpotPriceHistory"]:
            key, found = (entry["InstanceType"], entry["AvailabilityZone"]), float(entry["SpotPrice"])
            if key not in newest or newest[key][0] < entry["Timestamp"]:
                newest[key] = entry["Timestamp"], found
    if not newest:
        raise PriceUnknown(f"AWS has no spot price of {', '.join(spec.instance_types)} in {spec.region}")
    return [price for _, price in newest.values()]


def _aws_on_demand(client: Any, region: str, types: Iterable[str]) -> list[float]:
    found = []
    for instance_type in types:
        wanted = {
            "instanceType": instance_type, "regionCode": region, "operatingSystem": "Linux", "tenancy": "Shared",
            "preInstalledSw": "NA", "capacitystatus": "Used",
        }  # fmt: skip
        answer = client.get_products(
            ServiceCode="AmazonEC2",
            Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
        )
        prices = [price for product in answer["PriceList"] for price in _hourly(json.loads(product))]
        if not prices:
            raise PriceUnknown(f"AWS has no on-demand price of {instance_type} in {region}")
        found.append(max(prices))
    return found


def _hourly(product: Mapping[str, Any]) -> list[float]:
    terms = (product.get("terms") or {}).get("OnDemand") or {}
    dimensions = (entry for term in terms.values() for entry in term["priceDimensions"].values())
    prices = (float(entry["pricePerUnit"].get("USD", 0)) for entry in dimensions if entry.get("unit") == "Hrs")
    return [price for price in prices if price > 0]


def table(spec: CapacityTierSpec) -> Price:
    """A JSON file or object: region → machine type → {"spot": …, "on-demand": …}, in USD per hour.

    Raises PriceUnknown, InvalidSpec, StoreUnavailable.
    """
    from spotladder.checkpoints.open_store import open_store  # noqa: PLC0415 – loads what talks to buckets
    from spotladder.checkpoints.store import ObjectMissing  # noqa: PLC0415 – loads what talks to buckets

    if not spec.region or not spec.instance_types:
        raise PriceUnknown("price.source gcp needs spec.region and spec.instanceTypes")
    address = (spec.price.table if spec.price else None) or ""
    folder, _, name = address.rpartition("/")
    try:
        known = json.loads(open_store(folder or ".", {}).get(name))
        rows = [known[spec.region][machine] for machine in spec.instance_types]
        on_demand = fmean(_usd(row["on-demand"]) for row in rows)
        return Price(fmean(_usd(row[spec.capacity_type]) for row in rows), on_demand)
    except ObjectMissing:
        raise PriceUnknown(f"{address} does not exist") from None
    except KeyError as error:
        raise PriceUnknown(f"{address} has no {error.args[0]!r}") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise PriceUnknown(f"{address} is not a table of prices: {error}") from None


def _usd(price: Any) -> float:
    """A price in a table. Raises ValueError, TypeError, OverflowError."""
    if not 0 <= (usd := float(price)) < math.inf:
        raise ValueError(f"expected prices of 0 or more, got {usd}")
    return usd


def _boto3(service: str, region: str) -> Any:
    try:
        import boto3  # noqa: PLC0415 – an extra; slow to load
        from botocore.config import Config  # noqa: PLC0415
    except ImportError:
        raise EnvironmentFailure("price.source aws needs boto3: install spotladder[aws]") from None
    limits = Config(connect_timeout=5, read_timeout=20, retries={"max_attempts": 2})
    return boto3.client(service, region_name=region, config=limits)
