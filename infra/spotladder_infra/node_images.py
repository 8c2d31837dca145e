"""Reads the newest node image of AWS for a cluster from the public parameters of Systems Manager.

Sources: docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html and retrieve-ami-id-bottlerocket.html.
"""

from __future__ import annotations

from typing import Any

PARAMETERS = {
    "al2023": (
        "/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/x86_64/standard/recommended/release_version"
    ),
    "bottlerocket": "/aws/service/bottlerocket/aws-k8s-{kubernetes}/x86_64/latest/image_version",
}
"""Parameter with the newest release, by the family of an alias. All architectures of a release have the same number."""


def newest(ssm: Any, family: str, kubernetes: str) -> str | None:
    """The alias of the newest release, such as `al2023@v20261117`; None for a family without a parameter.

    Args:
        ssm: A boto3 client for Systems Manager in the region of the cluster.
        family: The part of an alias before the `@`.
        kubernetes: The minor version of the nodes.

    Raises:
        botocore.exceptions.ClientError: The parameter does not exist, or may not be read.
    """
    if family not in PARAMETERS:
        return None
    name = PARAMETERS[family].format(kubernetes=kubernetes)
    value = str(ssm.get_parameter(Name=name)["Parameter"]["Value"])
    if family == "al2023":
        return f"al2023@v{value.rpartition('-')[2]}"  # of 1.35.7-20261117
    return f"{family}@v{value.partition('-')[0]}"  # of 1.50.0-0a1b2c3d
