"""Sizes of instance families, which are the ends of the names of instance types, with the accelerators of one instance.

Sources, read on `AS_OF`: docs.aws.amazon.com/ec2/latest/instancetypes and Karpenter's list of instance types
(karpenter.sh/v1.14/reference/instance-types), cloud.google.com/compute/docs/gpus,
cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus. The table has the families in which
training usually runs; a family that is missing here is not an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

AS_OF = date(2026, 11, 29)

AWS_SIZE = re.compile(r"nano|micro|small|medium|large|[0-9]*xlarge|metal(-[0-9]+xl)?")
"""The form of every size on AWS."""

_G_SIZES = {
    "xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 4, "16xlarge": 1, "24xlarge": 4, "48xlarge": 8,
}  # fmt: skip
_EIGHT = {"48xlarge": 8}
_A_SIZES = {"1g": 1, "2g": 2, "4g": 4, "8g": 8}

SIZES: Mapping[str, Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {
        "aws": MappingProxyType(
            {
                "g4dn": {
                    "xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 4, "16xlarge": 1, "metal": 8,
                },
                "g5": _G_SIZES,
                "g6": _G_SIZES,
                "g6e": _G_SIZES,
                "g7e": {"2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 2, "24xlarge": 4, "48xlarge": 8},
                "p3dn": {"24xlarge": 8},
                "p4d": {"24xlarge": 8},
                "p4de": {"24xlarge": 8},
                "p5": {"4xlarge": 1, "48xlarge": 8},
                "p5e": _EIGHT,
                "p5en": _EIGHT,
                "p6-b200": _EIGHT,
                "p6-b300": _EIGHT,
                "trn1": {"2xlarge": 1, "32xlarge": 16},
                "trn1n": {"32xlarge": 16},
                "trn2": {"3xlarge": 1, "48xlarge": 16},
                "inf2": {"xlarge": 1, "8xlarge": 1, "24xlarge": 6, "48xlarge": 12},
            }
        ),
        "gcp": MappingProxyType(
            {
                "g2": {
                    "standard-4": 1, "standard-8": 1, "standard-12": 1, "standard-16": 1, "standard-24": 2,
                    "standard-32": 1, "standard-48": 4, "standard-96": 8,
                },
                "a2-highgpu": _A_SIZES,
                "a2-megagpu": {"16g": 16},
                "a2-ultragpu": _A_SIZES,
                "a3-highgpu": _A_SIZES,
                "a3-edgegpu": {"8g": 8},
                "a3-megagpu": {"8g": 8},
                "a3-ultragpu": {"8g": 8},
                "a4-highgpu": {"8g": 8},
                "ct4p": {"hightpu-4t": 4},
                "ct5lp": {"hightpu-1t": 1, "hightpu-4t": 4, "hightpu-8t": 8},
                "ct5p": {"hightpu-1t": 1, "hightpu-2t": 2, "hightpu-4t": 4},
                "ct6e": {"standard-1t": 1, "standard-4t": 4, "standard-8t": 8},
                "tpu7x": {"standard-4t": 4},
            }
        ),
    }
)  # fmt: skip
"""The sizes of each family, with the number of accelerators."""


def types_of(cloud: str, family: str) -> tuple[str, ...]:
    """The instance types of a family; empty when it is not in the table."""
    separator = "." if cloud == "aws" else "-"
    return tuple(f"{family}{separator}{size}" for size in SIZES[cloud].get(family, ()))


def accelerators_of(cloud: str, family: str, instance_type: str) -> int | None:
    """The accelerators of one instance of this type; None when the type is not in the table."""
    return SIZES[cloud].get(family, {}).get(instance_type[len(family) + 1 :])
