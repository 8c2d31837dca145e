"""Sizes of instance families: the ends of the names of instance types.

Sources, read on `AS_OF`: docs.aws.amazon.com/ec2/latest/instancetypes, cloud.google.com/compute/docs/gpus. The table
has the families in which training usually runs; a family that is missing here is not an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

AS_OF = date(2026, 11, 22)

AWS_SIZE = re.compile(r"nano|micro|small|medium|large|[0-9]*xlarge|metal(-[0-9]+xl)?")
"""The form of every size on AWS."""

_G_SIZES = ("xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge")

SIZES: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "aws": MappingProxyType(
            {
                "g4dn": ("xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "metal"),
                "g5": _G_SIZES,
                "g6": _G_SIZES,
                "g6e": _G_SIZES,
                "p4d": ("24xlarge",),
                "p4de": ("24xlarge",),
                "p5": ("4xlarge", "48xlarge"),
                "p5e": ("48xlarge",),
                "p5en": ("48xlarge",),
                "trn1": ("2xlarge", "32xlarge"),
                "trn1n": ("32xlarge",),
                "trn2": ("3xlarge", "48xlarge"),
            }
        ),
        "gcp": MappingProxyType(
            {
                "g2": tuple(f"standard-{cpus}" for cpus in (4, 8, 12, 16, 24, 32, 48, 96)),
                "a2-highgpu": ("1g", "2g", "4g", "8g"),
                "a2-ultragpu": ("1g", "2g", "4g", "8g"),
                "a3-highgpu": ("1g", "2g", "4g", "8g"),
                "a3-ultragpu": ("8g",),
            }
        ),
    }
)
"""The sizes of each family."""


def types_of(cloud: str, family: str) -> tuple[str, ...]:
    """The instance types of a family; empty when it is not in the table."""
    separator = "." if cloud == "aws" else "-"
    return tuple(f"{family}{separator}{size}" for size in SIZES[cloud].get(family, ()))
