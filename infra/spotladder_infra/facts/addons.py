"""The EKS add-ons of a cluster and their pinned versions by Kubernetes minor version.

They are pinned: with the default version of EKS, the same fleet file would create a different cluster after AWS has
changed the default. The field `addons` of a cluster overrides the table. `spotladder infra doctor` compares it with
what EKS offers.

Sources, read on `AS_OF`: the tables of the EKS user guide (managing-kube-proxy, managing-coredns, managing-vpc-cni).
The guide has no table for eks-pod-identity-agent and aws-ebs-csi-driver: their versions are those of clusters that were
created then.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

AS_OF = date(2026, 8, 20)

BEFORE_NODES = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
"""Add-ons that nodes need to become ready."""

EBS = "aws-ebs-csi-driver"

ON_NODES = ("coredns", EBS)
"""Add-ons that need nodes to become ready."""

INSTALLED = (*BEFORE_NODES, *ON_NODES)

OBSERVABILITY = "amazon-cloudwatch-observability"
"""Metrics of nodes, pods and NVIDIA GPUs (by DCGM), and logs of containers, in CloudWatch."""

DRIVERS: Mapping[str, str] = MappingProxyType(
    {"efs.csi.aws.com": "aws-efs-csi-driver", "fsx.csi.aws.com": "aws-fsx-csi-driver"}
)
"""Add-ons by the CSI driver that they install."""

OPTIONAL = (OBSERVABILITY, *DRIVERS.values())
"""Add-ons that are installed if the fleet file names them, at the version that it names."""

_VPC_CNI = "v1.22.4-eksbuild.3"
_POD_IDENTITY = "v1.3.10-eksbuild.3"
_EBS_CSI = "v1.66.0-eksbuild.1"

PINNED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "1.33": {
            "vpc-cni": _VPC_CNI,
            "kube-proxy": "v1.33.10-eksbuild.13",
            "eks-pod-identity-agent": "v1.3.10-eksbuild.2",
            "coredns": "v1.12.4-eksbuild.18",
            EBS: _EBS_CSI,
        },
        "1.34": {
            "vpc-cni": _VPC_CNI,
            "kube-proxy": "v1.34.6-eksbuild.13",
            "eks-pod-identity-agent": _POD_IDENTITY,
            "coredns": "v1.13.2-eksbuild.11",
            EBS: _EBS_CSI,
        },
        "1.35": {
            "vpc-cni": _VPC_CNI,
            "kube-proxy": "v1.35.3-eksbuild.13",
            "eks-pod-identity-agent": _POD_IDENTITY,
            "coredns": "v1.14.3-eksbuild.3",
            EBS: _EBS_CSI,
        },
        "1.36": {
            "vpc-cni": _VPC_CNI,
            "kube-proxy": "v1.36.0-eksbuild.14",
            "eks-pod-identity-agent": _POD_IDENTITY,
            "coredns": "v1.14.3-eksbuild.3",
            EBS: _EBS_CSI,
        },
    }
)
"""Versions by Kubernetes minor version and add-on."""
