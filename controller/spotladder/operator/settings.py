"""The settings of a controller, which are in a YAML file; `spotladder controller` has flags for some."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from spotladder.api.capacitytier import HOME
from spotladder.api.check import checked
from spotladder.api.document import MAX_NODES_OF_AN_ADMINISTRATOR, Document, read_documents
from spotladder.api.fields import Name
from spotladder.api.record import Record
from spotladder.api.tenancy import TenantRule
from spotladder.clusters.cluster_address import ClusterAddress
from spotladder.core.model import Seconds
from spotladder.errors import InvalidSpec

ATTRIBUTION_WINDOW: Seconds = 60.0
"""Kubernetes marks a node as lost up to 55 s after its last heartbeat (50 s of grace, checked every 5 s). Before that,
the programs on the other nodes fail because of the loss. If such a failure counted as the program's own error, it would
end the job for the loss of a node."""


class Settings(Record):
    """The settings of a controller."""

    model_config = ConfigDict(populate_by_name=True)

    kubeconfig: str | None = Field(default=None, description="The home cluster's kubeconfig; not needed in a pod.")
    context: str | None = Field(default=None, description="The kubeconfig's context.")
    namespaces: tuple[str, ...] = Field(
        default=(), description="Namespaces of the TieredJobs to reconcile; empty means all."
    )
    lease_namespace: str | None = Field(
        default=None, description="Namespace of the lease; default: the controller's namespace."
    )
    lease_name: str = Field(default="spotladder-controller", description="The lease's name.")
    listen: str = Field(default="127.0.0.1:8080", description="Address of /healthz, /readyz and /metrics.")
    workers: int = Field(default=16, ge=1, le=256, description="Number of jobs that are reconciled concurrently.")
    calls_per_second: float = Field(default=500.0, gt=0, description="Average number of API calls per second.")
    burst: int = Field(default=1000, ge=1, description="Maximum burst of API calls after a pause.")
    resync: float = Field(
        default=600.0, gt=0, description="Seconds after which every job is reconciled without an event."
    )
    settle: float = Field(
        default=ATTRIBUTION_WINDOW,
        ge=0,
        description="Seconds after a program's failure in which the loss of a node may still explain it.",
    )
    clusters: dict[Name, ClusterAddress] = Field(
        default_factory=dict, description="Member clusters to which CapacityTiers may refer, with their kubeconfigs."
    )
    tenancy: tuple[TenantRule, ...] = Field(
        default=(), description="What the jobs of namespaces may use. Rules for the same namespace add up."
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="Environment variables of every program, such as AWS_ENDPOINT_URL."
    )

    @field_validator("clusters")
    @classmethod
    def _home_is_given(cls, clusters: dict[str, ClusterAddress]) -> dict[str, ClusterAddress]:
        if HOME in clusters:
            raise ValueError(f"{HOME} is the name of the home cluster: give the other cluster another name")
        return clusters


def read_settings(file: Path | None, flags: dict[str, Any]) -> Settings:
    """The settings of a file, and of the given flags, which take precedence. Raises InvalidSpec with every problem."""
    documents = read_documents(file, most=MAX_NODES_OF_AN_ADMINISTRATOR) if file is not None else []
    if len(documents) > 1:
        raise InvalidSpec("has more than one document: write all settings into one", where=documents[1].where(()))
    document = next(iter(documents), Document("", {}, {}, {}))
    if not isinstance(document.data, dict):
        raise InvalidSpec("has no settings: write name: value", where=str(file))
    given = {to_camel(name): value for name, value in flags.items() if value not in (None, ())}
    places: dict[tuple[str | int, ...], str] = {(name,): "" for name in given}  # A flag has no place in the file.
    return checked(replace(document, data={**document.data, **given}, values={**document.values, **places}), Settings)
