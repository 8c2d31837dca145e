"""A repository for training images beside the cluster."""

from __future__ import annotations

from typing import Any

from cdktn_aws import ecr

from spotladder_infra.topology.cluster import Cluster


def images(scope: Any, cluster: Cluster) -> str:
    """The repository. A tag names the same image for ever, so that all attempts of a job run the same one. Returns the
    address of its images."""
    made = ecr.AwsRepository(
        scope,
        "images",
        name=cluster.name,
        image_tag_mutability="IMMUTABLE",
        image_scanning_configuration={"scan_on_push": True},
        force_delete=True,  # otherwise the images would stop `destroy` halfway
    )
    address: str = made.repository_url
    return address
