"""The names of cloud resources, all derived from the cluster's name, and the tags that identify their owner. Stacks and
renderers both use them: a NodeClass refers to the role and the subnets by these names.
"""

from __future__ import annotations

import hashlib

from spotladder.errors import EnvironmentFailure
from spotladder_infra.topology.cluster import Cluster, Roles
from spotladder_infra.topology.fleet import Fleet, Team

LONGEST_ROLE = 64

SYSTEM_NAMESPACE = "kube-system"
CONTROLLER_NAMESPACE = "spotladder-system"
CONTROLLER_ACCOUNT = "spotladder-controller"
KARPENTER_ACCOUNT = "karpenter"


OWNER = "spotladder-fleet"
"""The tag or label with the name of the fleet that a resource belongs to."""

HOME_EGRESS = "home_egress"
"""The variable of a member's stack with the public addresses of the home cluster, in CIDR notation."""


class ForeignBucket(EnvironmentFailure):
    """The bucket belongs to another account or project, or this identity may not use it."""


def discovery_tag(cluster: Cluster) -> dict[str, str]:
    """The tag by which Karpenter finds subnets and security groups."""
    return {"karpenter.sh/discovery": cluster.name}


def node_role(cluster: Cluster) -> str:
    """The IAM role and instance profile (AWS) or service account id (Google Cloud) of Karpenter's nodes."""
    return f"{cluster.name}-node"


def karpenter_account(cluster: Cluster) -> str:
    """The id of Karpenter's service account (Google Cloud)."""
    return f"{cluster.name}-karpenter"


def service_account(account: str, project: str) -> str:
    """The e-mail address of a service account of Google Cloud; `acme.com:ml` is a domain-scoped project."""
    domain, _, name = project.rpartition(":")
    return f"{account}@{'.'.join(filter(None, (name, domain)))}.iam.gserviceaccount.com"


def karpenter_role(cluster: Cluster) -> str:
    """The id of Karpenter's custom role (Google Cloud), which may have no hyphens."""
    return f"spotladder_karpenter_{cluster.name.replace('-', '_')}"


def interruption_queue(cluster: Cluster) -> str:
    """The SQS queue of interruption notices."""
    return f"{cluster.name}-interruptions"


def common_tags(fleet: Fleet, cluster: Cluster) -> dict[str, str]:
    """The tags of every resource of a cluster."""
    return {**fleet.spec.tags, **ownership_tags(fleet, cluster)}


def ownership_tags(fleet: Fleet, cluster: Cluster) -> dict[str, str]:
    """The common tags that identify the cluster a resource belongs to."""
    return {OWNER: fleet.metadata.name, "spotladder-cluster": cluster.name}


def ownership_text(fleet: Fleet, cluster: Cluster) -> str:
    """The labels as text, for the description of a resource that has no labels."""
    return " ".join(f"{key}={value}" for key, value in ownership_tags(fleet, cluster).items())


def kubeconfig_secret(cluster: str) -> str:
    """The Secret beside the controller, in the home cluster, with the kubeconfig of another cluster."""
    return f"cluster-{cluster}"


def bucket_key_alias(bucket: str) -> str:
    """The alias of the KMS key of a checkpoint bucket (AWS)."""
    return f"alias/spotladder/{bucket.replace('.', '-')}"


def training_role(cluster: Cluster, team: Team) -> str:
    """The IAM role of a team's training pods."""
    return role_name(f"{cluster.name}-train-{team.name}")


def replication_role(roles: Roles, bucket: str) -> str:
    """The IAM role that copies the objects of a bucket to its replica, with the prefix of the fleet file."""
    return role_name(f"{roles.prefix or ''}{replication_name(bucket)}")


def replication_name(bucket: str) -> str:
    """The name of that role without a prefix."""
    return f"{bucket}-replication"[:LONGEST_ROLE]


def role_name(name: str) -> str:
    """The name of an IAM role, within IAM's limit of 64 characters."""
    return shortened(name, LONGEST_ROLE)


def shortened(name: str, longest: int) -> str:
    """The name; if it is longer than `longest` characters, its beginning and a digest of it."""
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: longest - 9]}-{digest}"
