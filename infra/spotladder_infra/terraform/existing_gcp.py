"""Finds the resources of a stack that exist in a Google Cloud project.

A cluster, a bucket and a repository have labels; networks, service accounts and roles have the same in their
description. Subnetworks and routers belong to their network, node pools to their cluster. IAM bindings are not looked
up: Terraform creates an existing binding without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spotladder_infra.google import COMPUTE, IAM, REGISTRY, STORAGE, Google, RequestRefused
from spotladder_infra.names import ownership_in
from spotladder_infra.terraform.existing import Existing
from spotladder_infra.topology.cluster import Cluster

FORBIDDEN = 403

_Found = tuple[str, Mapping[str, str] | None] | None
"""Terraform's id of a resource and its tags; None when it does not exist."""


def existing(cluster: Cluster, stack: Mapping[str, Any], creates: set[str]) -> list[Existing]:
    """The resources at `creates` that exist. Raises EnvironmentFailure.

    Args:
        stack: The stack's configuration.
    """
    lookup = _Lookup(Google(), cluster)
    return list(_found(lookup.finders(), stack["resource"], creates))


def _found(
    finders: Mapping[str, Callable[[Any], _Found]], stack: Mapping[str, Any], creates: set[str]
) -> Iterator[Existing]:
    for kind, finder in finders.items():
        for name, body in stack.get(kind, {}).items():
            found = finder(body) if f"{kind}.{name}" in creates else None
            if found is not None:
                yield Existing(f"{kind}.{name}", *found)


class _Lookup:
    """Looks up the resources of one cluster's stack in Google Cloud."""

    def __init__(self, cloud: Google, cluster: Cluster) -> None:
        self._cloud = cloud
        self._cluster = cluster
        self._project = f"projects/{cluster.project}"
        self._region = f"{self._project}/regions/{cluster.region}"

    def finders(self) -> dict[str, Callable[[Any], _Found]]:
        """For each type of resource, a function that looks it up by its configuration."""
        return {
            "google_compute_network": self._network,
            "google_compute_subnetwork": lambda body: self._in_network(f"{self._region}/subnetworks/{body['name']}"),
            "google_compute_router": lambda body: self._in_network(f"{self._region}/routers/{body['name']}"),
            "google_compute_router_nat": self._nat,
            "google_container_cluster": self._gke_cluster,
            "google_container_node_pool": self._node_pool,
            "google_service_account": self._service_account,
            "google_project_iam_custom_role": self._role,
            "google_storage_bucket": self._bucket,
            "google_artifact_registry_repository": self._repository,
        }

    def _network(self, body: Any) -> _Found:
        path = f"{self._project}/global/networks/{body['name']}"
        return self._described(COMPUTE, path, path)

    def _described(self, endpoint: str, path: str, identifier: str) -> _Found:
        found = self._cloud.find(endpoint, path)
        if found is None or found.get("deleted"):
            return None
        return identifier, ownership_in(found.get("description", ""))

    def _in_network(self, path: str) -> _Found:
        """A resource without labels. One of another network is reported as foreign."""
        found = self._cloud.find(COMPUTE, path)
        if found is None:
            return None
        ours = str(found.get("network", "")).endswith(f"/global/networks/{self._cluster.name}")
        return path, None if ours else {}

    def _nat(self, body: Any) -> _Found:
        path = f"{self._region}/routers/{self._cluster.name}"
        found = self._cloud.find(COMPUTE, path) or {}
        found_nat = any(entry["name"] == body["name"] for entry in found.get("nats", []))
        return (f"{path}/{body['name']}", None) if found_nat else None

    def _labels(self) -> dict[str, str] | None:
        cluster = self._cluster
        return self._cloud.cluster_labels(cluster.project or "", cluster.region or "", cluster.name)

    def _gke_cluster(self, body: Any) -> _Found:
        labels = self._labels()
        path = f"{self._project}/locations/{self._cluster.region}/clusters/{body['name']}"
        return None if labels is None else (path, labels)

    def _node_pool(self, body: Any) -> _Found:
        if self._labels() is None:
            return None
        cluster = self._cluster
        if not self._cloud.has_node_pool(cluster.project or "", cluster.region or "", cluster.name, body["name"]):
            return None
        return f"{cluster.project}/{cluster.region}/{cluster.name}/{body['name']}", None

    def _service_account(self, body: Any) -> _Found:
        email = f"{body['account_id']}@{self._cluster.project}.iam.gserviceaccount.com"
        path = f"{self._project}/serviceAccounts/{email}"
        return self._described(IAM, path, path)

    def _role(self, body: Any) -> _Found:
        path = f"{self._project}/roles/{body['role_id']}"
        return self._described(IAM, path, path)

    def _bucket(self, body: Any) -> _Found:
        try:
            found = self._cloud.find(STORAGE, f"b/{body['name']}")
        except RequestRefused as refusal:
            if refusal.status == FORBIDDEN:  # names of buckets are global: it is in another project
                return body["name"], {}
            raise
        return None if found is None else (body["name"], found.get("labels", {}))

    def _repository(self, body: Any) -> _Found:
        path = f"{self._project}/locations/{body['location']}/repositories/{body['repository_id']}"
        found = self._cloud.find(REGISTRY, path)
        return None if found is None else (path, found.get("labels", {}))
