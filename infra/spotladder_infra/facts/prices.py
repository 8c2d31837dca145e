"""On-demand prices in USD for estimates before anything exists, of us-east-1 (AWS) and us-central1 (Google Cloud).

Sources, read on `AS_OF`: the public price lists of both clouds. Other regions cost up to 40 % more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from types import MappingProxyType

AS_OF = date(2026, 11, 22)

NODE_HOUR: Mapping[str, float] = MappingProxyType(
    {
        "c7i.large": 0.08925, "c7i.xlarge": 0.1785, "c7i.2xlarge": 0.357, "c7i.4xlarge": 0.714,
        "m7i.large": 0.1008, "m7i.xlarge": 0.2016, "m7i.2xlarge": 0.4032, "m7i.4xlarge": 0.8064,
        "g4dn.xlarge": 0.526, "g4dn.2xlarge": 0.752, "g4dn.12xlarge": 3.912,
        "g5.xlarge": 1.006, "g5.2xlarge": 1.212, "g5.4xlarge": 1.624, "g5.12xlarge": 5.672, "g5.48xlarge": 16.288,
        "g6.xlarge": 0.8048, "g6.2xlarge": 0.9776, "g6.12xlarge": 4.6016, "g6.48xlarge": 13.3504,
        "e2-standard-2": 0.067, "e2-standard-4": 0.134, "e2-standard-8": 0.268,
        "n2-standard-4": 0.1942, "n2-standard-8": 0.3885,
        "g2-standard-4": 0.7068, "g2-standard-8": 0.8536, "g2-standard-12": 1.0004, "g2-standard-48": 4.0016,
        "a2-highgpu-1g": 3.6734, "a2-highgpu-8g": 29.3873,
    }
)  # fmt: skip
"""USD per node and hour."""

CONTROL_PLANE_HOUR: Mapping[str, float] = MappingProxyType({"aws": 0.10, "gcp": 0.10})
NAT_GATEWAY_HOUR = 0.045
"""USD per hour for each NAT gateway (AWS; aws.amazon.com/vpc/pricing)."""

CLOUD_NAT_NODE_HOUR, CLOUD_NAT_MOST_HOUR = 0.0014, 0.044
"""USD per hour of Cloud NAT for each node that uses it, and at most (cloud.google.com/nat/pricing)."""

PUBLIC_ADDRESS_HOUR = 0.005
"""USD per hour for each public IPv4 address of a NAT gateway, on both clouds."""

INTERFACE_ENDPOINT_HOUR = 0.01
"""USD per hour for each interface endpoint in each zone (AWS)."""

KMS_KEY_MONTH = 1.0
HOURS_PER_MONTH = 730

DISK_GIB_MONTH: Mapping[str, float] = MappingProxyType({"aws": 0.08, "gcp": 0.10})
"""USD per GiB and month of the root volumes: gp3 (AWS), pd-balanced (Google Cloud)."""

DISK_THROUGHPUT_MONTH, DISK_THROUGHPUT_FREE = 0.04, 125
"""USD per MiB/s and month of a gp3 volume, above the throughput that is free of charge (aws.amazon.com/ebs/pricing)."""

DISK_IOPS_MONTH, DISK_IOPS_FREE = 0.005, 3000
"""USD per IOPS and month of a gp3 volume, above the IOPS that are free of charge."""

REGION_EGRESS_GIB: Mapping[str, float] = MappingProxyType({"aws": 0.02, "gcp": 0.02})
"""USD per GiB between two regions of one cloud."""


def dearest(instance_types: Iterable[str]) -> float | None:
    """USD per hour of the most expensive of these instance types; None when one is not in the table."""
    prices = [NODE_HOUR.get(name) for name in instance_types]
    known = [price for price in prices if price is not None]
    return max(known) if known and len(known) == len(prices) else None
