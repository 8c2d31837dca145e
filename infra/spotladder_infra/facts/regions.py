"""Regions with their zones.

The tables hold the regions in which training usually runs. A region that is missing here is not an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

AS_OF = date(2026, 11, 22)


def _zones(separator: str, **regions: str) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType(
        {
            region.replace("_", "-"): tuple(f"{region.replace('_', '-')}{separator}{letter}" for letter in letters)
            for region, letters in regions.items()
        }
    )


ZONES: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "aws": _zones(
            "",
            us_east_1="abcdef", us_east_2="abc", us_west_1="abc", us_west_2="abcd", ca_central_1="abd",
            eu_west_1="abc", eu_west_2="abc", eu_west_3="abc", eu_central_1="abc", eu_north_1="abc",
            ap_northeast_1="acd", ap_northeast_2="abcd", ap_south_1="abc", ap_southeast_1="abc", ap_southeast_2="abc",
            sa_east_1="abc",
        ),
        "gcp": _zones(
            "-",
            us_central1="abcf", us_east1="bcd", us_east4="abc", us_east5="abc", us_west1="abc", us_west4="abc",
            northamerica_northeast1="abc", southamerica_east1="abc",
            europe_west1="bcd", europe_west2="abc", europe_west3="abc", europe_west4="abc", europe_north1="abc",
            asia_east1="abc", asia_northeast1="abc", asia_northeast3="abc", asia_south1="abc", asia_southeast1="abc",
        ),
    }
)  # fmt: skip

WITHOUT_EKS = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})
"""The ids of zones of AWS in which EKS refuses the subnets of a cluster; each account has its own names for them
(docs.aws.amazon.com/eks/latest/userguide/network-reqs.html, as of 2026-11-30)."""

_ZONE_FORM = {
    "aws": re.compile(r"([a-z]{2}(?:-[a-z]+)+-[0-9])[a-z]"),
    "gcp": re.compile(r"([a-z]+-[a-z]+[0-9]+)-[a-z]"),
}
_REGION_FORM = {"aws": re.compile(r"[a-z]{2}(?:-[a-z]+)+-[0-9]"), "gcp": re.compile(r"[a-z]+-[a-z]+[0-9]+")}


def is_region(cloud: str, name: str) -> bool:
    """Whether the name has the form of a region of that cloud."""
    return _REGION_FORM[cloud].fullmatch(name) is not None


def region_of(cloud: str, zone: str) -> str | None:
    """The region of the zone with this name; None if the name does not have the form of a zone."""
    found = _ZONE_FORM[cloud].fullmatch(zone)
    return found[1] if found else None


def default_zones(cloud: str, region: str) -> tuple[str, ...]:
    """The first three zones of the region; empty when the region is not in the table."""
    return ZONES[cloud].get(region, ())[:3]


def principal_of(service: str, region: str) -> str:
    """The principal of EC2 or CloudWatch Logs in the policies of a region. Of the services whose principals the stacks
    name, only these have another domain in China (docs.amazonaws.cn, user guides of EKS and CloudWatch Logs)."""
    return f"{service}.amazonaws.com{'.cn' if partition_of(region) == 'aws-cn' else ''}"


def partition_of(region: str) -> str:
    """The partition of a region of AWS, which begins its ARNs."""
    return {"cn": "aws-cn", "us-gov": "aws-us-gov"}.get(region.rpartition("-")[0].rpartition("-")[0], "aws")
