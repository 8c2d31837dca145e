"""Finds existing resources that a stack is about to create, so that Terraform imports them instead of failing. A killed
apply leaves resources that the state does not contain; `destroy` keeps the checkpoint bucket. Both have the tags of
fleet and cluster. A resource with the same name and other tags belongs to another owner: it is reported before anything
is created.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from spotladder.errors import EnvironmentFailure
from spotladder_infra.names import ownership_tags
from spotladder_infra.terraform import existing_aws, existing_gcp
from spotladder_infra.terraform.events import Action, Planned
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet

_CLOUDS = {Cloud.AWS: existing_aws.existing, Cloud.GCP: existing_gcp.existing}


def imports(fleet: Fleet, cluster: Cluster, folder: Path, planned: Sequence[Planned]) -> dict[str, str]:
    """The resources of the plan to import: address → id for Terraform.

    Raises:
        EnvironmentFailure: A name belongs to another owner (one line for each), or the cloud refuses.
    """
    creates = {entry.address for entry in planned if entry.action is Action.CREATE}
    if not creates:
        return {}
    stack = json.loads((folder / "cdk.tf.json").read_text(encoding="utf-8"))
    try:
        found = _CLOUDS[cluster.cloud](cluster, stack, creates)
    except EnvironmentFailure as error:
        raise EnvironmentFailure(f"cluster {cluster.name}: the existing resources cannot be listed: {error}") from None
    wanted = ownership_tags(fleet, cluster)
    foreign = [entry for entry in found if entry.tags is not None and not wanted.items() <= dict(entry.tags).items()]
    if foreign:
        marks = ", ".join(f"{key}={value}" for key, value in wanted.items())
        raise EnvironmentFailure(
            "\n".join(
                f"cluster {cluster.name}: {entry.address}: {entry.identifier} exists and does not belong to this "
                f"cluster (expected the tags {marks}): delete or rename it, or rename the cluster"
                for entry in foreign
            )
        )
    return {entry.address: entry.identifier for entry in found}
