"""Starts ministack with the fields of EKS that it leaves out: run by the Python of a separate environment.

Ministack 1.5 does not return some fields of a cluster and of a node group; the AWS provider would see them as
changed. If it finds Docker, it also starts a container for each cluster, which these tests do not need.
"""

from __future__ import annotations

from typing import Any

from ministack.app import main
from ministack.services import eks

CLUSTER_FIELDS = ("upgradePolicy", "deletionProtection", "zonalShiftConfig")
NODE_GROUP_FIELDS = ("launchTemplate", "updateConfig")

create_cluster, create_node_group = eks._create_cluster, eks._create_nodegroup


def keep_cluster_fields(body: dict[str, Any], *rest: Any) -> Any:
    answer = create_cluster(body, *rest)
    cluster = eks._clusters.get(body.get("name", ""))
    if cluster is not None:
        cluster["certificateAuthority"] = {"data": "ZW11bGF0b3I="}  # no API server is behind it
        for name in CLUSTER_FIELDS:
            if name in body:
                cluster.setdefault(name, body[name])
    return answer


def keep_node_group_fields(cluster_name: str, body: dict[str, Any]) -> Any:
    answer = create_node_group(cluster_name, body)
    group = eks._nodegroups.get(f"{cluster_name}/{body.get('nodegroupName', '')}")
    if group is not None:
        for name in NODE_GROUP_FIELDS:
            if name in body:
                group.setdefault(name, body[name])
        if "launchTemplate" in group and "diskSize" not in body:
            group.pop("diskSize", None)
    return answer


eks._create_cluster, eks._create_nodegroup = keep_cluster_fields, keep_node_group_fields
eks._get_docker = lambda: None

if __name__ == "__main__":
    main()
