"""Service accounts of nodes and of Karpenter, and permissions of pods by Workload Identity Federation, without keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cdktn_provider_google.data_google_project import DataGoogleProject
from cdktn_provider_google.project_iam_custom_role import ProjectIamCustomRole
from cdktn_provider_google.project_iam_member import ProjectIamMember
from cdktn_provider_google.service_account import ServiceAccount
from cdktn_provider_google.service_account_iam_member import ServiceAccountIamMember

from spotladder_infra.names import (
    CONTROLLER_ACCOUNT,
    CONTROLLER_NAMESPACE,
    KARPENTER_ACCOUNT,
    SYSTEM_NAMESPACE,
    karpenter_account,
    karpenter_role,
    node_role,
)
from spotladder_infra.topology.cluster import Autoscaler, Cluster
from spotladder_infra.topology.fleet import Team

NODE_ROLES = ("roles/artifactregistry.reader", "roles/container.defaultNodeServiceAccount")

KARPENTER_PERMISSIONS = (
    "compute.disks.create",
    "compute.images.get",
    "compute.images.list",
    "compute.instanceGroupManagers.get",
    "compute.instanceTemplates.get",
    "compute.instanceTemplates.list",
    "compute.instances.create",
    "compute.instances.delete",
    "compute.instances.get",
    "compute.instances.list",
    "compute.instances.setLabels",
    "compute.instances.setMetadata",
    "compute.instances.setServiceAccount",
    "compute.instances.setTags",
    "compute.machineTypes.list",
    "compute.networks.get",
    "compute.projects.get",
    "compute.regions.get",
    "compute.subnetworks.get",
    "compute.subnetworks.use",
    "compute.zoneOperations.get",
    "compute.zones.list",
    "container.clusters.get",
    "container.clusters.list",
    "container.clusters.update",
)
"""The role that karpenter-provider-gcp 0.5 publishes (deploy/iam/karpenter-controller-role.yaml), without external
addresses: the nodes are private."""


@dataclass(frozen=True, slots=True)
class Pods:
    """The IAM principals of Kubernetes service accounts in this project."""

    project: str
    number: str

    def principal(self, namespace: str, service_account: str) -> str:
        """The IAM principal of the pods of one Kubernetes service account."""
        pool = f"projects/{self.number}/locations/global/workloadIdentityPools/{self.project}.svc.id.goog"
        return f"principal://iam.googleapis.com/{pool}/subject/ns/{namespace}/sa/{service_account}"

    @property
    def controller(self) -> str:
        """The controller's principal."""
        return self.principal(CONTROLLER_NAMESPACE, CONTROLLER_ACCOUNT)

    def training(self, team: Team) -> str:
        """The principal of a team's training pods."""
        return self.principal(team.name, team.service_account)


def pods(scope: Any, project: str, key: str = "project") -> Pods:
    """The principals of a project. Terraform looks up its number as the data source `key`."""
    found = DataGoogleProject(scope, key, project_id=project)
    return Pods(project, found.number)


def node_account(scope: Any, cluster: Cluster, owner: str) -> Any:
    """The service account of all nodes: logs, metrics and images, no buckets. `owner` is its description."""
    made = ServiceAccount(
        scope,
        "node",
        account_id=node_role(cluster),
        display_name=f"Nodes of GKE cluster {cluster.name}",
        description=owner,
    )
    for role in NODE_ROLES:
        ProjectIamMember(
            scope, f"node-{role.rpartition('.')[2]}", project=cluster.project or "", role=role, member=made.member
        )
    return made


def controller_access(scope: Any, cluster: Cluster, principals: Pods, after: Any) -> None:
    """Lets the controller read the addresses of the API servers of the project's clusters.

    The identity pool of a project exists as soon as its first cluster does, so every grant to pods is made `after` it.
    """
    ProjectIamMember(
        scope,
        "controller-clusters",
        project=cluster.project or "",
        role="roles/container.clusterViewer",
        member=principals.controller,
        depends_on=[after],
    )


def karpenter(scope: Any, cluster: Cluster, node: Any, owner: str, after: Any) -> str | None:
    """Karpenter's service account, described by `owner`; None if GKE itself creates the nodes.

    Its pods may use it `after` the cluster exists, as in `controller_access`.
    """
    if cluster.provisioner is not Autoscaler.KARPENTER:
        return None
    made = ServiceAccount(
        scope,
        "karpenter",
        account_id=karpenter_account(cluster),
        display_name=f"Karpenter of {cluster.name}",
        description=owner,
    )
    role = ProjectIamCustomRole(
        scope,
        "karpenter-role",
        role_id=karpenter_role(cluster),
        title=f"Karpenter of {cluster.name}",
        description=owner,
        permissions=list(KARPENTER_PERMISSIONS),
    )
    ProjectIamMember(scope, "karpenter-project", project=cluster.project or "", role=role.name, member=made.member)
    ServiceAccountIamMember(
        scope,
        "karpenter-nodes",
        service_account_id=node.name,
        role="roles/iam.serviceAccountUser",
        member=made.member,
    )
    ServiceAccountIamMember(
        scope,
        "karpenter-pods",
        service_account_id=made.name,
        role="roles/iam.workloadIdentityUser",
        member=f"serviceAccount:{cluster.project}.svc.id.goog[{SYSTEM_NAMESPACE}/{KARPENTER_ACCOUNT}]",
        depends_on=[after],
    )
    return str(made.email)
