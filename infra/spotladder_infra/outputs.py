"""The contract between a cluster's stack and the platform layer: one JSON object, validated on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from spotladder.api.record import Record
from spotladder.errors import EnvironmentFailure
from spotladder_infra import names
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet

VERSION = 1
"""Version of the contract. It increases when a field is removed or changes its meaning; new fields are optional."""

NAME = "spotladder"
"""The name of the Terraform output."""

Text = Annotated[str, Field(min_length=1)]


class Network(Record):
    """The network of the nodes, for other stacks."""

    network: Text | None = Field(default=None, description="The id of the VPC (aws) or of the network (gcp).")
    subnets: list[Text] = Field(description="The ids of the nodes' subnets.")
    security_groups: list[Text] = Field(
        default_factory=list, description="The security groups of the cluster and of its nodes (aws)."
    )


class Identity(Record):
    """The identities of pods: role ARNs (aws) or e-mail addresses of service accounts (gcp)."""

    karpenter: Text | None = Field(default=None, description="Karpenter's.")
    controller: Text = Field(description="The controller's.")
    training: dict[str, Text] = Field(default_factory=dict, description="Those of the training pods, by team.")
    nodes: list[Text] = Field(default_factory=list, description="Those of the nodes, Karpenter's first.")


class ClusterOutputs(Record):
    """The attributes of one cluster that the platform layer needs."""

    version: Literal[1] = Field(description=f"The version of this contract: {VERSION}.")
    fleet: Text = Field(description="The fleet's name.")
    cluster: Text = Field(description="The cluster's name.")
    cloud: Literal["aws", "gcp"] = Field(description="aws or gcp.")
    region: Text = Field(description="Its region.")
    project: Text | None = Field(default=None, description="The Google Cloud project.")
    kubernetes: Text = Field(description="The Kubernetes minor version.")
    endpoint: Text = Field(description="The API server.")
    node_identity: Text = Field(description="Instance profile (aws) or service account (gcp) of Karpenter's nodes.")
    interruption_queue: Text | None = Field(default=None, description="Karpenter's queue (aws).")
    egress: list[Text] = Field(
        default_factory=list,
        description="Addresses from which its nodes reach the internet. Other clusters on aws allow those of the home "
        "cluster. Empty where the cloud assigns them.",
    )
    network: Network | None = Field(default=None, description="The network of its nodes.")
    oidc_issuer: Text | None = Field(default=None, description="The issuer of its service accounts' tokens.")
    checkpoints: Text | None = Field(default=None, description="The checkpoint bucket as s3://… or gs://…")
    images: Text | None = Field(default=None, description="The repository for training images.")
    identities: Identity = Field(description="The identities of pods.")

    @classmethod
    def of_stack(cls, fleet: Fleet, cluster: Cluster, **attributes: Any) -> ClusterOutputs:
        """The outputs of a cluster's stack: these attributes of its resources, and what the fleet file has."""
        bucket = fleet.bucket_of(cluster)
        scheme = "s3" if cluster.cloud is Cloud.AWS else "gs"
        return cls.model_validate(
            {
                "version": VERSION,
                "fleet": fleet.metadata.name,
                "cluster": cluster.name,
                "cloud": str(cluster.cloud),
                "region": cluster.region,
                "project": cluster.project,
                "kubernetes": cluster.kubernetes,
                "checkpoints": f"{scheme}://{bucket.name}" if bucket is not None else None,
                **attributes,
            }
        )


def written(outputs: ClusterOutputs) -> dict[str, object]:
    """The outputs in the form in which the stack has them."""
    return outputs.model_dump(mode="json", by_alias=True, exclude_none=True)


def read(value: object, cluster: str) -> ClusterOutputs:
    """The outputs of an applied stack. Raises EnvironmentFailure for another version, a missing or a wrong field."""
    version = value.get("version") if isinstance(value, dict) else None
    if version != VERSION:
        found = "none" if version is None else f"version {version}"
        raise _refused(cluster, f"expected version {VERSION}, got {found}")
    try:
        return ClusterOutputs.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        problem = "is missing" if first["type"] == "missing" else first["msg"]
        raise _refused(cluster, f"{field}: {problem}") from None


def require(outputs: ClusterOutputs, fleet: Fleet, cluster: Cluster) -> ClusterOutputs:
    """The outputs, if they are those of this cluster. Raises EnvironmentFailure for those of another one."""
    expected = {
        "fleet": fleet.metadata.name,
        "cluster": cluster.name,
        "cloud": str(cluster.cloud),
        "region": cluster.region,
        "project": cluster.project,
    }
    for field, wanted in expected.items():
        if (found := getattr(outputs, field)) != wanted:
            raise _refused(cluster.name, f"{field}: expected {wanted}, got {found}")
    if cluster.cloud is Cloud.AWS and outputs.interruption_queue is None:
        raise _refused(cluster.name, "interruptionQueue: is missing")
    return outputs


def _refused(cluster: str, problem: str) -> EnvironmentFailure:
    return EnvironmentFailure(
        f"outputs of cluster {cluster}: {problem}: run spotladder infra bootstrap --cluster {cluster} with this release"
    )


@dataclass(frozen=True, slots=True)
class StackIdentities:
    """The values that the charts of a cluster take from its stack. `karpenter` is None on AWS, where EKS Pod Identity
    binds it."""

    nodes: str
    interruption_queue: str | None
    karpenter: str | None


def identities(outputs: ClusterOutputs) -> StackIdentities:
    """The identities of an applied stack."""
    karpenter = outputs.identities.karpenter if outputs.cloud == "gcp" else None
    return StackIdentities(outputs.node_identity, outputs.interruption_queue, karpenter)


def named(cluster: Cluster) -> StackIdentities:
    """The identities by the names that the stack gives them, to render charts before the stack is applied."""
    if cluster.cloud is Cloud.GCP:
        nodes, karpenter = (
            names.service_account(account, cluster.project or "")
            for account in (names.node_role(cluster), names.karpenter_account(cluster))
        )
        return StackIdentities(nodes, None, karpenter)
    return StackIdentities(names.node_role(cluster), names.interruption_queue(cluster), None)
