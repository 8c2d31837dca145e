"""Regions with their zones, and the accelerators of instance families.

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


ACCELERATORS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "aws": MappingProxyType(
            {
                "g4dn": "nvidia-t4",
                "g5": "nvidia-a10g",
                "g6": "nvidia-l4",
                "g6e": "nvidia-l40s",
                "g7e": "nvidia-rtx-pro-6000",
                "p3dn": "nvidia-v100-32gb",
                "p4d": "nvidia-a100-40gb",
                "p4de": "nvidia-a100-80gb",
                "p5": "nvidia-h100-80gb",
                "p5e": "nvidia-h200-141gb",
                "p5en": "nvidia-h200-141gb",
                "p6-b200": "nvidia-b200",
                "p6-b300": "nvidia-b300",
                "trn1": "aws-trainium",
                "trn1n": "aws-trainium",
                "trn2": "aws-trainium2",
                "inf2": "aws-inferentia2",
            }
        ),
        "gcp": MappingProxyType(
            {
                "g2": "nvidia-l4",
                "a2-highgpu": "nvidia-tesla-a100",
                "a2-megagpu": "nvidia-tesla-a100",
                "a2-ultragpu": "nvidia-a100-80gb",
                "a3-highgpu": "nvidia-h100-80gb",
                "a3-edgegpu": "nvidia-h100-80gb",
                "a3-megagpu": "nvidia-h100-mega-80gb",
                "a3-ultragpu": "nvidia-h200-141gb",
                "a4-highgpu": "nvidia-b200",
                "ct4p": "tpu-v4-podslice",
                "ct5lp": "tpu-v5-lite-podslice",
                "ct5p": "tpu-v5p-slice",
                "ct6e": "tpu-v6e-slice",
                "tpu7x": "tpu7x",
            }
        ),
    }
)
"""The accelerator of each accelerated instance family. On Google Cloud it is the name that ComputeClasses, node
auto-provisioning and Compute Engine use (cloud.google.com/compute/docs/gpus), and for TPUs the node label
`cloud.google.com/gke-tpu-accelerator` (cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus). AWS has no such
names."""

TPU_DIMENSIONS: Mapping[str, int] = MappingProxyType(
    {"tpu-v4-podslice": 3, "tpu-v5-lite-podslice": 2, "tpu-v5p-slice": 3, "tpu-v6e-slice": 2, "tpu7x": 3}
)
"""The number of dimensions of the topologies of each kind of TPU."""

TPUS_OF_SLICE_NODE = 4
"""TPUs of each node of a slice of several nodes. A machine with another number is a slice of its own."""


def family_of(cloud: str, instance_type: str) -> str:
    """The instance family: `g5` of `g5.xlarge`, `a2-highgpu` of `a2-highgpu-1g`, `g2` of `g2-standard-8`."""
    if cloud == "aws":
        return instance_type.partition(".")[0]
    parts = instance_type.split("-")
    accelerated = "-".join(parts[:2])
    return accelerated if accelerated in ACCELERATORS["gcp"] else parts[0]
