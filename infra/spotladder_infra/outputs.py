"""The contract between a cluster's stack and the platform layer: one JSON object, validated on both sides."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from spotladder.api.record import Record
from spotladder.errors import EnvironmentFailure

VERSION = 1
"""Grows when a field is removed or changes its meaning; new fields are optional and do not change it."""

NAME = "spotladder"
"""The name of the Terraform output."""

Text = Annotated[str, Field(min_length=1)]


class Identity(Record):
    """The identities of pods: role ARNs (aws) or e-mail addresses of service accounts (gcp)."""

    karpenter: Text | None = Field(default=None, description="Karpenter's.")
    controller: Text = Field(description="The controller's.")
    training: dict[str, Text] = Field(default_factory=dict, description="Those of the training pods, by team.")


class ClusterOutputs(Record):
    """One cluster as the platform layer needs it."""

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
    checkpoints: Text | None = Field(default=None, description="The checkpoint bucket as s3://… or gs://…")
    identities: Identity = Field(description="The identities of pods.")


def written(outputs: ClusterOutputs) -> dict[str, object]:
    """The outputs as they stand in the stack."""
    return outputs.model_dump(mode="json", by_alias=True, exclude_none=True)


def read(value: object, cluster: str) -> ClusterOutputs:
    """The outputs of an applied stack. Raises EnvironmentFailure for those of another version or none."""
    version = value.get("version") if isinstance(value, dict) else None
    if version != VERSION:
        found = "none" if version is None else f"version {version}"
        raise EnvironmentFailure(
            f"outputs of cluster {cluster}: expected version {VERSION}, got {found}: apply its stack with this release"
        )
    try:
        return ClusterOutputs.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise EnvironmentFailure(
            f"outputs of cluster {cluster}: {field}: {first['msg']}: apply its stack with this release"
        ) from None
