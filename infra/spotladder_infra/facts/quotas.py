"""Quotas of the clouds by instance family and accelerator. Several of them are 0 in a new account.

Sources: docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html and using-spot-limits.html,
cloud.google.com/compute/resource-usage (names of metrics), as of 2026-11.
"""

from __future__ import annotations

import re

SPOT_QUOTA = {
    "standard": ("L-34B43A08", "spot vCPUs, standard families"),
    "g": ("L-3819A6DF", "spot vCPUs, G and VT"),
    "p": ("L-7212CCBC", "spot vCPUs, P4, P3 and P2"),
    "p5": ("L-C4BD4855", "spot vCPUs, P5"),
    "inf": ("L-B5D1601B", "spot vCPUs, Inf"),
    "trn": ("L-6B0D517C", "spot vCPUs, Trn"),
    "dl": ("L-85EED4F7", "spot vCPUs, DL"),
    "x": ("L-E3A00192", "spot vCPUs, X"),
    "f": ("L-88CF9481", "spot vCPUs, F"),
}
ON_DEMAND_QUOTA = {
    "standard": ("L-1216C47A", "on-demand vCPUs, standard families"),
    "g": ("L-DB2E81BA", "on-demand vCPUs, G and VT"),
    "p": ("L-417A185B", "on-demand vCPUs, P"),
    "inf": ("L-1945791B", "on-demand vCPUs, Inf"),
    "trn": ("L-2C3B7624", "on-demand vCPUs, Trn"),
    "dl": ("L-6E869C2A", "on-demand vCPUs, DL"),
    "x": ("L-7295265B", "on-demand vCPUs, X"),
    "f": ("L-74FC7D96", "on-demand vCPUs, F"),
}
"""Code and name of the quota of EC2 for a class of instance families."""

GPU_METRIC = {
    "nvidia-tesla-a100": "NVIDIA_A100_GPUS",
    "nvidia-tesla-t4": "NVIDIA_T4_GPUS",
    "nvidia-tesla-v100": "NVIDIA_V100_GPUS",
    "nvidia-h100-80gb": "NVIDIA_H100_GPUS",
    "nvidia-h100-mega-80gb": "NVIDIA_H100_MEGA_GPUS",
    "nvidia-h200-141gb": "NVIDIA_H200_GPUS",
}
"""Quota metrics of Google's accelerators whose name does not show it; otherwise nvidia-l4 is NVIDIA_L4_GPUS."""

TPU_METRIC = {"ct5lp": "TPU_LITE_PODSLICE_V5"}
"""Quota metrics, in chips, of the TPUs that regions report; those of later TPUs are in Cloud Quotas only."""

_STANDARD = frozenset("acdhimrtz")
_LETTERS = re.compile("[a-z]+")


def quota_class(instance_type: str) -> str:
    """The class of quota of an instance type of EC2: `standard` of m7i.large, `g` of g5.xlarge, `p5` of p5.48xlarge."""
    family = instance_type.partition(".")[0]
    letters = (_LETTERS.match(family) or [""])[0]
    if letters == "vt":
        return "g"
    if family.startswith("p5"):
        return "p5"
    return "standard" if letters in _STANDARD else letters
