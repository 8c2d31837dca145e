"""Instance families with accelerators: their accelerator, and their sizes, which are the ends of the names of instance
types, with the number of accelerators of one instance.

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

AWS_ARM = re.compile(r"a1|[a-z]+[0-9]+[a-z-]*g[a-z0-9]*")
"""The form of families with ARM processors on AWS, which have a `g` after the generation: m7g, c6gn, p6e-gb200
(docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html)."""

_G_SIZES = {
    "xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 4, "16xlarge": 1, "24xlarge": 4, "48xlarge": 8,
}  # fmt: skip
_EIGHT = {"48xlarge": 8}
_EIGHT_G = {"8g": 8}
_A_SIZES = {"1g": 1, "2g": 2, "4g": 4, "8g": 8}

FAMILIES: Mapping[str, Mapping[str, tuple[str, Mapping[str, int]]]] = MappingProxyType(
    {
        "aws": MappingProxyType(
            {
                "g4dn": (
                    "nvidia-t4",
                    {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 4, "16xlarge": 1, "metal": 8},
                ),
                "g5": ("nvidia-a10g", _G_SIZES),
                "g6": ("nvidia-l4", _G_SIZES),
                "g6e": ("nvidia-l40s", _G_SIZES),
                "g7e": (
                    "nvidia-rtx-pro-6000",
                    {"2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 2, "24xlarge": 4, "48xlarge": 8},
                ),
                "p3dn": ("nvidia-v100-32gb", {"24xlarge": 8}),
                "p4d": ("nvidia-a100-40gb", {"24xlarge": 8}),
                "p4de": ("nvidia-a100-80gb", {"24xlarge": 8}),
                "p5": ("nvidia-h100-80gb", {"4xlarge": 1, "48xlarge": 8}),
                "p5e": ("nvidia-h200-141gb", _EIGHT),
                "p5en": ("nvidia-h200-141gb", _EIGHT),
                "p6-b200": ("nvidia-b200", _EIGHT),
                "p6-b300": ("nvidia-b300", _EIGHT),
                "trn1": ("aws-trainium", {"2xlarge": 1, "32xlarge": 16}),
                "trn1n": ("aws-trainium", {"32xlarge": 16}),
                "trn2": ("aws-trainium2", {"3xlarge": 1, "48xlarge": 16}),
                "inf2": ("aws-inferentia2", {"xlarge": 1, "8xlarge": 1, "24xlarge": 6, "48xlarge": 12}),
            }
        ),
        "gcp": MappingProxyType(
            {
                "g2": (
                    "nvidia-l4",
                    {
                        "standard-4": 1, "standard-8": 1, "standard-12": 1, "standard-16": 1, "standard-24": 2,
                        "standard-32": 1, "standard-48": 4, "standard-96": 8,
                    },
                ),
                "a2-highgpu": ("nvidia-tesla-a100", _A_SIZES),
                "a2-megagpu": ("nvidia-tesla-a100", {"16g": 16}),
                "a2-ultragpu": ("nvidia-a100-80gb", _A_SIZES),
                "a3-highgpu": ("nvidia-h100-80gb", _A_SIZES),
                "a3-edgegpu": ("nvidia-h100-80gb", _EIGHT_G),
                "a3-megagpu": ("nvidia-h100-mega-80gb", _EIGHT_G),
                "a3-ultragpu": ("nvidia-h200-141gb", _EIGHT_G),
                "a4-highgpu": ("nvidia-b200", _EIGHT_G),
                "ct4p": ("tpu-v4-podslice", {"hightpu-4t": 4}),
                "ct5lp": ("tpu-v5-lite-podslice", {"hightpu-1t": 1, "hightpu-4t": 4, "hightpu-8t": 8}),
                "ct5p": ("tpu-v5p-slice", {"hightpu-1t": 1, "hightpu-2t": 2, "hightpu-4t": 4}),
                "ct6e": ("tpu-v6e-slice", {"standard-1t": 1, "standard-4t": 4, "standard-8t": 8}),
                "tpu7x": ("tpu7x", {"standard-4t": 4}),
            }
        ),
    }
)  # fmt: skip
"""By cloud and family: the accelerator, and its number by size. On Google Cloud the accelerator has the name that
ComputeClasses, node auto-provisioning and Compute Engine use, and for TPUs that of the node label
`cloud.google.com/gke-tpu-accelerator`. AWS has no such names."""

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
    return accelerated if accelerated in FAMILIES["gcp"] else parts[0]


def accelerator_of(cloud: str, name: str) -> str:
    """The accelerator of an instance type or family; "" when it has none, or is not in the table."""
    return _family(cloud, name)[0]


def number_of_accelerators(cloud: str, instance_type: str) -> int | None:
    """The accelerators of one instance of this type; None when the type is not in the table."""
    size = instance_type[len(family_of(cloud, instance_type)) + 1 :]
    return _family(cloud, instance_type)[1].get(size)


def types_of(cloud: str, name: str) -> tuple[str, ...]:
    """The instance types of a family, or of that of an instance type; empty when it is not in the table."""
    separator = "." if cloud == "aws" else "-"
    return tuple(f"{family_of(cloud, name)}{separator}{size}" for size in _family(cloud, name)[1])


def _family(cloud: str, name: str) -> tuple[str, Mapping[str, int]]:
    return FAMILIES.get(cloud, {}).get(family_of(cloud, name), ("", {}))
