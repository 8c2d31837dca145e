"""`fleet.yaml`: clusters, pools, checkpoint buckets and teams of one fleet.

The models check rules on one object. `checks` has the rules between objects and the facts about clouds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from spotladder.api.fields import Count, FilledText, Finding, Name, Quantity, Switch, Usd, choice, several
from spotladder.api.problems import quoted
from spotladder.api.record import Metadata, Record
from spotladder.errors import InvalidSpec
from spotladder_infra.topology.cluster import WITH_STACK, Cloud, Cluster
from spotladder_infra.topology.platform import Platform, Rollout
from spotladder_infra.topology.value_types import BucketName, IamPrincipal, KmsKey, StateUri, is_aws_key, key_region

LONGEST_REPLICATED = 63 - len("-replica")
"""Maximum length of the name of a bucket with a replica, whose name must not be longer than S3 allows."""


class Bucket(Record):
    """A bucket for checkpoints. It is created with the first cluster that uses it."""

    name: BucketName = Field(description="The bucket's name, unique in the whole cloud.")
    cloud: Annotated[Cloud, choice(Cloud)] = Field(description="aws or gcp.")
    region: FilledText = Field(description="The bucket's region.")
    create: Switch = Field(default=True, description="Create the bucket; false for an existing bucket.")
    deletion_protection: Switch = Field(
        default=True, description="Refuse every plan that deletes the bucket or its key."
    )
    replicate_to: FilledText | None = Field(default=None, description="Copy new objects to this region (aws).")
    kms_key: KmsKey | None = Field(
        default=None,
        description="Your key: projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY (gcp; bootstrap lets "
        "Cloud Storage use it) or arn:aws:kms:REGION:ACCOUNT:key/ID (aws). Default: a key of its own (aws), the keys "
        "of Google (gcp).",
    )
    monthly_gi_b: Count = Field(
        default=1000, alias="monthlyGiB", description="GiB read and written per month, to estimate the cost of egress."
    )

    @model_validator(mode="after")
    def _fits_its_cloud(self) -> Bucket:
        found = []
        if self.cloud not in WITH_STACK:
            found.append(Finding(("cloud",), f"{self.cloud} has no buckets: use aws or gcp"))
        if self.replicate_to and self.cloud is not Cloud.AWS:
            found.append(Finding(("replicateTo",), "exists on aws only: GCS has dual-region buckets; remove it"))
        if self.replicate_to and len(self.name) > LONGEST_REPLICATED:
            message = (
                f"has {len(self.name)} characters (expected at most {LONGEST_REPLICATED} with replicateTo: the replica "
                "is NAME-replica): shorten it"
            )
            found.append(Finding(("name",), message))
        if self.replicate_to == self.region:
            message = "must be another region than the bucket's own: choose another one, or remove it"
            found.append(Finding(("replicateTo",), message))
        if self.kms_key and is_aws_key(self.kms_key) is not (self.cloud is Cloud.AWS):
            found.append(Finding(("kmsKey",), f"is a key of another cloud: name a key of {self.cloud}"))
        elif self.kms_key and (location := key_region(self.kms_key)) != self.region.lower():
            message = f"is in {location}: the bucket needs a key in {self.region}; choose one"
            found.append(Finding(("kmsKey",), message))
        if found:
            raise several(found)
        return self


class Quota(Record):
    """The quota of a team in one cluster."""

    cpu: Quantity | None = Field(default=None, description="CPUs.")
    memory: Quantity | None = Field(default=None, description="Memory.")
    accelerators: Count | None = Field(default=None, description="NVIDIA accelerators.")


class PodSecurity(StrEnum):
    """Pod Security Standards of Kubernetes."""

    RESTRICTED = "restricted"
    BASELINE = "baseline"
    PRIVILEGED = "privileged"


class Team(Record):
    """A namespace for the jobs of one team, with access to its own prefix of the checkpoint buckets."""

    name: Name = Field(description="The team's name; also its namespace.")
    clusters: list[Name] = Field(default_factory=list, description="Clusters of the team. Default: all.")
    service_account: Name = Field(default="training", description="The service account of its training pods.")
    groups: list[FilledText] = Field(
        default_factory=list, description="Groups of the cluster's users that may write the team's TieredJobs."
    )
    users: list[FilledText] = Field(default_factory=list, description="Users that may write the team's TieredJobs.")
    iam_principals: list[IamPrincipal] = Field(
        default_factory=list,
        description="IAM roles and users (AWS) of the team, by ARN. In clusters on aws they are in the team's groups; "
        "without groups, in a group with the team's name.",
    )
    pod_security: Annotated[PodSecurity, choice(PodSecurity)] = Field(
        default=PodSecurity.BASELINE,
        description="Pod Security Standard that the namespace enforces: restricted, baseline or privileged. With "
        "restricted, jobs need spec.podSecurity: restricted.",
    )
    budget: Usd | None = Field(
        default=None,
        description="USD in 30 days. The alert SpotladderBudgetExceeded names a team whose jobs have cost more.",
    )
    quota: Quota = Field(default_factory=Quota, description="The limits of the team in each cluster.")

    @property
    def kubernetes_groups(self) -> tuple[str, ...]:
        """The groups of Kubernetes that may write the team's TieredJobs."""
        return tuple(self.groups) or ((self.name,) if self.iam_principals else ())


class StateLocation(Record):
    """Where Terraform keeps its state."""

    uri: StateUri = Field(description="s3://bucket/prefix or gs://bucket/prefix.")
    region: FilledText | None = Field(default=None, description="The bucket's region; required for s3.")

    @model_validator(mode="after")
    def _has_a_region(self) -> StateLocation:
        if self.uri.startswith("s3://") and not self.region:
            raise several([Finding(("region",), "is required for s3")])
        return self


class FleetSpec(Record):
    """The content of the fleet."""

    home: Name = Field(description="The cluster in which the controller runs.")
    state: StateLocation | None = Field(
        default=None, description="Location of Terraform's state. Default: local files."
    )
    tags: dict[str, FilledText] = Field(default_factory=dict, description="Tags (labels on gcp) of all resources.")
    buckets: list[Bucket] = Field(default_factory=list, description="Buckets for checkpoints.")
    teams: list[Team] = Field(default_factory=list, description="Namespaces of teams.")
    clusters: Annotated[list[Cluster], Field(min_length=1)] = Field(description="The clusters.")
    platform: Platform = Field(default_factory=Platform, description="Components that are installed in the clusters.")
    rollout: Rollout = Field(default_factory=Rollout, description="The rollout of a change to the clusters.")


class Fleet(Record):
    """Everything that `spotladder infra` creates and installs."""

    api_version: Literal["spotladder.io/v1alpha1"] = Field(description="Always spotladder.io/v1alpha1.")
    kind: Literal["Fleet"] = Field(description="Always Fleet.")
    metadata: Metadata = Field(description="The fleet's name.")
    spec: FleetSpec = Field(description="The content of the fleet.")

    def cluster(self, name: str) -> Cluster:
        """The cluster of that name. Raises InvalidSpec."""
        for entry in self.spec.clusters:
            if entry.name == name:
                return entry
        known = ", ".join(entry.name for entry in self.spec.clusters)
        raise InvalidSpec(f"the fleet has no cluster {quoted(name)} (it has {known})")

    def bucket_of(self, cluster: Cluster) -> Bucket | None:
        """The checkpoint bucket that the cluster uses."""
        return next((entry for entry in self.spec.buckets if entry.name == cluster.bucket), None)

    def users_of(self, bucket: Bucket) -> tuple[Cluster, ...]:
        """The clusters that use the bucket, in the order of the file."""
        return tuple(
            entry for entry in self.spec.clusters if entry.bucket == bucket.name and entry.cloud is bucket.cloud
        )

    def owner_of(self, bucket: Bucket) -> Cluster | None:
        """The cluster whose stack creates the bucket: the first one of its cloud that uses it."""
        return next(iter(self.users_of(bucket)), None) if bucket.create else None

    def created_bucket(self, cluster: Cluster) -> Bucket | None:
        """The checkpoint bucket that the cluster's stack creates."""
        bucket = self.bucket_of(cluster)
        return bucket if bucket is not None and self.owner_of(bucket) == cluster else None

    def regions_of(self, cluster: Cluster) -> list[str]:
        """The regions of the resources of a cluster's stack: only its bucket and the replica may be outside its own."""
        bucket = self.created_bucket(cluster)
        names = [cluster.region, bucket.region, bucket.replicate_to] if bucket is not None else [cluster.region]
        return list(dict.fromkeys(name for name in names if name))

    def teams_of(self, cluster: Cluster) -> tuple[Team, ...]:
        """The teams with a namespace in the cluster."""
        return tuple(team for team in self.spec.teams if not team.clusters or cluster.name in team.clusters)

    def teams_with_namespace(self, cluster: Cluster) -> tuple[Team, ...]:
        """The teams of the cluster; in the home cluster all, because they submit their jobs there."""
        return tuple(self.spec.teams) if cluster.name == self.spec.home else self.teams_of(cluster)

    def teams_using(self, bucket: Bucket) -> tuple[Team, ...]:
        """The teams with a namespace in a cluster that uses the bucket."""
        found = {team.name for cluster in self.users_of(bucket) for team in self.teams_of(cluster)}
        return tuple(team for team in self.spec.teams if team.name in found)
