"""The components of the clusters of a fleet, and their rollout: `spec.platform` and `spec.rollout`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from spotladder.api.fields import FilledText, Finding, Name, PositiveDuration, Switch, several
from spotladder.api.record import Record
from spotladder_infra.topology.value_types import Registry, Repository

COMPONENTS = (
    "karpenter",
    "jobset",
    "kueue",
    "gpu-device-plugin",
    "efa-device-plugin",
    "neuron-device-plugin",
    "pools",
    "kuberay",
    "controller",
)
"""Releases whose values may be changed under `platform.values`, in the order of their installation."""


class Image(Record):
    """The image of the controller."""

    repository: Repository = Field(description="Repository of the image that the Dockerfile builds.")
    tag: FilledText | None = Field(default=None, description="Tag of the image. Default: the version of spotladder.")
    digest: FilledText | None = Field(default=None, description="Digest of the image, sha256:…; overrides the tag.")


class Platform(Record):
    """The components of each cluster."""

    image: Image | None = Field(default=None, description="The image of the controller.")
    charts: FilledText | None = Field(
        default=None,
        description="A folder with the charts (NAME/ or NAME-VERSION.tgz), for clusters without internet access. A "
        "relative path begins at the folder of the fleet file.",
    )
    mirror: Registry | None = Field(
        default=None,
        description="A registry that has the charts and images of all components below their own addresses: "
        "MIRROR/quay.io/kuberay/operator.",
    )
    jobset: Switch = Field(default=False, description="Install JobSet.")
    kueue: Switch = Field(default=False, description="Install Kueue.")
    gpu_device_plugin: Switch | None = Field(
        default=None,
        description="Install NVIDIA's device plugin on the nodes of pools with NVIDIA accelerators (not on gcp, where "
        "GKE does it). Default: true on aws, false in existing clusters.",
    )
    values: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description=f"Helm values by component ({', '.join(COMPONENTS)}), merged over those of the fleet. No secrets: "
        "they are stored in the rollout's state.",
    )

    @model_validator(mode="after")
    def _known_components(self) -> Platform:
        unknown = [name for name in self.values if name not in COMPONENTS]
        if unknown:
            message = f"is not a component (expected one of {', '.join(COMPONENTS)})"
            raise several([Finding(("values", name), message, at_key=True) for name in unknown])
        return self


class Smoke(Record):
    """A job that must succeed in each cluster before the rollout continues."""

    job: FilledText = Field(description="A file with a TieredJob. Its tiers are replaced by the cluster's.")
    timeout: PositiveDuration = Field(default=900.0, description="Time in which the job must succeed.")


class Rollout(Record):
    """The rollout of a change to the clusters."""

    canary: list[Name] = Field(default_factory=list, description="Clusters that get each change first.")
    concurrency: Annotated[int, Field(ge=1, le=50)] = Field(
        default=4, description="Maximum number of clusters at the same time."
    )
    timeout: PositiveDuration = Field(default=600.0, description="Time in which a component must become ready.")
    smoke: Smoke | None = Field(default=None, description="Job that tests each cluster. Default: none.")
