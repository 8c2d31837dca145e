"""Rules for the identities of the controller and of training pods: limits of IAM, and buckets without access."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from spotladder_infra import iam
from spotladder_infra.facts.regions import partition_of
from spotladder_infra.topology.cluster import WITH_STACK, Cloud, Cluster
from spotladder_infra.topology.findings import Check, FleetFinding, with_stack
from spotladder_infra.topology.fleet import Bucket, Fleet

LONGEST_ROLE_POLICY = 10_240
"""Maximum length of the inline policies of a role in characters, without whitespace. AWS does not raise this limit."""

MAX_CONDITIONS = 20
"""Maximum number of bindings of one role to one principal with different conditions in a Google Cloud policy; fixed."""

ANY_ACCOUNT = "1" * 12


def role_sizes(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that the policy of the controller's role, which names each team in each bucket, fits IAM's limit (AWS)."""
    for _index, cluster in with_stack(fleet):
        if cluster.cloud is not Cloud.AWS:
            continue
        buckets = iam.controller_buckets(fleet, cluster)
        scope = iam.PolicyScope(partition_of(cluster.region or ""), ANY_ACCOUNT, cluster.region or "")
        size = iam.size(iam.controller(scope, buckets))
        if size > LONGEST_ROLE_POLICY:
            prefixes = sum(len(entry.teams) for entry in buckets)
            message = (
                f"with {prefixes} prefixes of teams in {len(buckets)} buckets the policy of the controller's role has "
                f"{size} characters (IAM allows {LONGEST_ROLE_POLICY}): use shorter names, limit teams to the clusters "
                "that they need (clusters), or make two fleets"
            )
            yield FleetFinding(("spec", "teams"), message)


def conditions(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check the number of the controller's bindings, one for each team in a bucket (Google Cloud)."""
    home = _home(fleet)
    if home is None or home.cloud is not Cloud.GCP:
        return
    for index, bucket in enumerate(fleet.spec.buckets):
        teams = len(fleet.teams_using(bucket))
        if bucket.cloud is Cloud.GCP and teams > MAX_CONDITIONS:
            message = (
                f"is used by {teams} teams (expected at most {MAX_CONDITIONS}: Google Cloud allows the controller no "
                "more bindings with different conditions): add a bucket for some of the clusters, limit teams to the "
                "clusters that they need (clusters), or make two fleets"
            )
            yield FleetFinding(("spec", "buckets", index), message)


def controller_access(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that the controller has access to the commit logs of all jobs, also in the bucket of another cloud."""
    home = _home(fleet)
    if home is None or fleet.spec.platform.values.get("controller", {}).get("checkpointSecrets"):
        return
    for index, bucket in enumerate(fleet.spec.buckets):
        users = fleet.users_of(bucket)
        if users and fleet.teams_using(bucket) and (where := _out_of_reach(bucket, home, users[0])):
            message = (
                f"is in {where}, where the controller in {home.name} has no identity: create a Secret with credentials "
                "in the namespaces of the jobs that use it, name it in their checkpoints.credentials and in "
                "spec.platform.values.controller.checkpointSecrets"
            )
            yield FleetFinding(("spec", "buckets", index), message, warning=True)


def unused_buckets(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check the buckets of existing clusters: spotladder creates no identity for a bucket in a cluster that it has not
    created."""
    for index, cluster in enumerate(fleet.spec.clusters):
        if cluster.bucket is not None and cluster.cloud not in WITH_STACK:
            message = (
                f"has no effect for cloud {cluster.cloud}: no identity is created there; remove it, and give jobs a "
                "Secret (checkpoints.credentials)"
            )
            yield FleetFinding(("spec", "clusters", index, "bucket"), message, warning=True)


def team_members(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Warn about groups of teams that no IAM identity is in: EKS has groups only in access entries."""
    on_eks = [cluster for cluster in fleet.spec.clusters if cluster.cloud is Cloud.AWS]
    for index, team in enumerate(fleet.spec.teams):
        if team.groups and not team.iam_principals and any(team in fleet.teams_with_namespace(c) for c in on_eks):
            message = "are empty on EKS: name the team's IAM roles in iamPrincipals, or create access entries yourself"
            yield FleetFinding(("spec", "teams", index, "groups"), message, warning=True)


IDENTITY_CHECKS: tuple[Check, ...] = (role_sizes, conditions, controller_access, unused_buckets, team_members)


def _home(fleet: Fleet) -> Cluster | None:
    return next((entry for entry in fleet.spec.clusters if entry.name == fleet.spec.home), None)


def _out_of_reach(bucket: Bucket, home: Cluster, owner: Cluster) -> str:
    """The cloud or the account of the bucket, if the controller has no identity there; otherwise ""."""
    if bucket.cloud is not home.cloud:
        return str(bucket.cloud)
    if owner.account and home.account and owner.account != home.account:
        return f"account {owner.account}"
    return ""
