"""The bring-up of a GKE cluster."""

from __future__ import annotations

from collections.abc import Iterator

from spotladder_infra.bringup.hop import Hop, PlannedCluster, both, hop
from spotladder_infra.doctor.gcp import apis
from spotladder_infra.names import (
    CONTROLLER_ACCOUNT,
    CONTROLLER_NAMESPACE,
    KARPENTER_ACCOUNT,
    SYSTEM_NAMESPACE,
    node_role,
)
from spotladder_infra.topology.cluster import Autoscaler
from spotladder_infra.topology.defaults import accelerators_of
from spotladder_infra.topology.network import Nat

_NODE = "${google_service_account.node."
_GRANTED = "google_project_iam_member"
_OWN_PLUGIN = "GKE, on nodes with accelerators"


def hops(sight: PlannedCluster) -> Iterator[Hop]:
    """The hops in the order in which they happen."""
    cluster, network = sight.cluster, sight.cluster.network
    project = cluster.project or ""
    yours, existing = sight.existing_cluster, sight.existing_network
    routes = existing or sight.having("google_compute_router_nat", "ALL_SUBNETWORKS_ALL_IP_RANGES")
    if network.nat is Nat.NONE and not existing:
        routes = both(
            sight.having("google_compute_subnetwork", '"private_ip_google_access": true'),
            sight.mirror,
        )
    yield hop("the project has the APIs", apis=[f"{name}.googleapis.com" for name in apis(sight.fleet, project)])
    yield hop(
        "nodes have their service account",
        account=sight.having("google_service_account", f'"{node_role(cluster)}"'),
        role=sight.having(_GRANTED, "roles/container.defaultNodeServiceAccount", _NODE),
    )
    yield hop(
        "the network has ranges for pods", subnetwork=existing or sight.having("google_compute_subnetwork", "pods")
    )
    yield hop("nodes reach Google and the registries", route=routes)
    yield hop(
        "the API server starts, and IAM lets users in",
        cluster=yours or sight.having("google_container_cluster", '"enable_private_nodes": true'),
        address=yours or sight.having("google_container_cluster", '"allow_external_traffic": true'),
    )
    yield hop("system nodes join", nodes=yours or sight.having("google_container_node_pool", _NODE))
    if cluster.provisioner is Autoscaler.KARPENTER:
        yield from _karpenter(sight)
    else:
        kinds = {kind for pool in cluster.pools for kind in accelerators_of(cluster, pool)}
        yield hop(
            "GKE creates nodes",
            **{
                f"limit_{kind}": yours or sight.having("google_container_cluster", f'"resource_type": "{kind}"')
                for kind in ("cpu", "memory", *sorted(kinds))
            },
            **{
                f"pool_{pool.name}": sight.pools("computeClasses", pool, f'"{node_role(cluster)}@')
                for pool in cluster.pools
            },
        )
    for vendor, what in (("nvidia", "GPUs"), ("tpu", "TPUs")):
        if any(sight.with_accelerators(vendor)):
            yield hop(f"nodes report their {what}", plugin=[_OWN_PLUGIN])
    images = {"repository": sight.having("google_artifact_registry_repository")} if cluster.image_repository else {}
    reader = sight.having(_GRANTED, "roles/artifactregistry.reader", _NODE)
    yield hop("nodes pull images", role=reader, route=routes, **images)
    pool = f'"workload_pool": "{project}.svc.id.goog"'
    identities = yours or sight.having("google_container_cluster", pool)
    subject = f"/subject/ns/{CONTROLLER_NAMESPACE}/sa/{CONTROLLER_ACCOUNT}"
    yield hop(
        "the controller has its identity",
        pool=identities,
        role=sight.having(_GRANTED, "roles/container.clusterViewer", subject),
        release=sight.release("controller"),
    )
    bucket = sight.fleet.bucket_of(cluster)
    if bucket is None:
        return
    first = sight.fleet.users_of(bucket)[0].name
    other = [f"the stack of {first}"] if first != cluster.name else []
    for team in sight.fleet.teams_of(cluster):
        yield hop(
            f"pods of {team.name} have their identity",
            pool=identities,
            service_account=sight.release("pools", f'"{team.name}"', f'"{team.service_account}"'),
        )
        parts = (
            "roles/storage.objectUser",
            f"/subject/ns/{team.name}/sa/{team.service_account}",
            f"/objects/{team.name}/",
        )
        yield hop(
            f"pods of {team.name} write checkpoints",
            role=other or sight.having("google_storage_bucket_iam_member", *parts),
        )


def _karpenter(sight: PlannedCluster) -> Iterator[Hop]:
    cluster = sight.cluster
    member, of_account = f"[{SYSTEM_NAMESPACE}/{KARPENTER_ACCOUNT}]", "google_service_account_iam_member"
    yield hop(
        "Karpenter has its identity",
        binding=sight.having(of_account, "roles/iam.workloadIdentityUser", member),
        release=sight.release("karpenter", f'"clusterName": "{cluster.cloud_name}"', f"{cluster.name}-karpenter@"),
    )
    yield hop(
        "Karpenter launches nodes",
        role=sight.having("google_project_iam_custom_role", "compute.instances.create", "container.clusters.list"),
        granted=sight.having(_GRANTED, "${google_service_account.karpenter.", "google_project_iam_custom_role"),
        pass_account=sight.having(of_account, "roles/iam.serviceAccountUser", _NODE),
        **{f"pool_{pool.name}": sight.pools("nodeClasses", pool, f"{node_role(cluster)}@") for pool in cluster.pools},
    )
