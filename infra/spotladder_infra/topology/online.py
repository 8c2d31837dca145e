"""What only the cloud knows: its zones of today, and where an instance type is offered. Asks AWS; changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spotladder.api.problems import quoted
from spotladder.errors import EnvironmentFailure
from spotladder_infra.topology.checks import Found
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.defaults import zones_of
from spotladder_infra.topology.fleet import Fleet


def check_online(fleet: Fleet) -> list[Found]:
    """Zones and instance types that AWS does not have for this account. Raises EnvironmentFailure.

    Clusters of other clouds are not asked about.
    """
    found: list[Found] = []
    for index, cluster in enumerate(fleet.spec.clusters):
        if cluster.cloud is Cloud.AWS:
            found += _aws(index, cluster)
    return found


def _aws(index: int, cluster: Cluster) -> list[Found]:
    try:
        import boto3  # noqa: PLC0415 – only --online needs it
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    except ImportError:
        raise EnvironmentFailure(
            "the package boto3 is missing: install it with pip install 'spotladder[aws]'"
        ) from None
    try:
        return list(_findings(boto3.client("ec2", region_name=cluster.region), index, cluster))
    except (BotoCoreError, ClientError) as error:
        raise EnvironmentFailure(
            f"cluster {cluster.name}: AWS cannot be asked: {error}: check the credentials of this shell"
        ) from None


def _findings(client: Any, index: int, cluster: Cluster) -> Iterator[Found]:
    path = ("spec", "clusters", index)
    there = {zone["ZoneName"] for zone in client.describe_availability_zones()["AvailabilityZones"]}
    for place, zone in enumerate(cluster.zones):
        if zone not in there:
            yield Found((*path, "zones", place), f"{quoted(zone)} is not a zone of this account in {cluster.region}")
    for place, pool in enumerate(cluster.pools):
        wanted = set(pool.zones or zones_of(cluster))
        for at, name in enumerate(pool.instance_types):
            offered = _zones_with(client, name)
            if not offered & wanted:
                where = f"it is in {', '.join(sorted(offered))}" if offered else f"nowhere in {cluster.region}"
                message = f"{name} is not offered in {', '.join(sorted(wanted))} ({where}): choose other zones or types"
                yield Found((*path, "pools", place, "instanceTypes", at), message)


def _zones_with(client: Any, instance_type: str) -> set[str]:
    pages = client.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [instance_type]}]
    )
    return {offer["Location"] for page in pages for offer in page["InstanceTypeOfferings"]}
