"""TieredJob: a training job and the ordered capacity tiers that it may run on."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from spotladder.api.fields import (
    CheckpointUri,
    Count,
    Duration,
    EnvironmentName,
    FilledText,
    Finding,
    Interval,
    JobName,
    Name,
    PolicyName,
    PositiveDuration,
    PrivateText,
    Quantity,
    SecretName,
    Switch,
    Timestamp,
    Usd,
    WholeNumber,
    choice,
    several,
)
from spotladder.api.record import API_VERSION, Metadata, Record
from spotladder.api.workload import Workload
from spotladder.core.model import (
    FOR_EVER,
    Exhausted,
    FailureUnit,
    Handover,
    OnInsufficientCapacity,
    UpdateStrategy,
)

MOST_TIERS = 32
MOST_COPIES = 32


class Resources(Record):
    """Amounts that a worker's container asks for."""

    requests: dict[str, Quantity] = Field(default_factory=dict, description="What the container is scheduled by.")
    limits: dict[str, Quantity] = Field(default_factory=dict, description="What the container may use at most.")


class TierOverrides(Record):
    """What differs in the workload on one tier."""

    image: FilledText | None = Field(default=None, description="Container image of the Ray containers on this tier.")
    resources: Resources | None = Field(default=None, description="Resources of the worker containers on this tier.")
    env: dict[EnvironmentName, PrivateText] = Field(
        default_factory=dict, description="Environment variables added on this tier; they win over the template's."
    )


class JobTier(Record):
    """One capacity tier in the job's order."""

    name: Name = Field(description="The tier's name, unique in the job; shown in status, logs and metrics.")
    capacity_tier: Name = Field(
        description="The CapacityTier to use. In local mode: a pool of the world file.",
    )
    max_failures: WholeNumber = Field(
        default=0,
        ge=FOR_EVER,
        description=(
            "How many worker pods may be lost on this tier, by eviction or any other reason; the next loss moves "
            "the job to the next tier. 0: the first loss does. -1: never."
        ),
    )
    provision_timeout: PositiveDuration = Field(
        default=600.0,
        description="For how long the job may be without all its workers, at the start or after a loss, before it "
        "moves to the next tier.",
    )
    on_insufficient_capacity: Annotated[OnInsufficientCapacity, choice(OnInsufficientCapacity)] = Field(
        default=OnInsufficientCapacity.WAIT,
        description="What it means that the provisioner has no capacity: wait (provisionTimeout decides) or fallback "
        "(the job moves to the next tier at once).",
    )
    overrides: TierOverrides = Field(
        default_factory=TierOverrides, description="What differs in the workload on this tier."
    )


class RestartPolicy(Record):
    """A cap on failures over all tiers."""

    backoff_limit: Count | None = Field(
        default=None, description="The job fails when more than this many failures happened over all tiers."
    )


class ApplicationFailures(Record):
    """What happens when the program fails by its own fault."""

    limit: Count = Field(
        default=0,
        description="How many failures of the program itself are answered with a new attempt on the same tier.",
    )


class PolicyChoice(Record):
    """Which policy chooses the tier."""

    name: PolicyName = Field(
        default="ordered",
        description="ordered (the tiers in their order), or the name of an installed policy.",
    )


class CheckpointCredentials(Record):
    """Where the credentials for the bucket are."""

    secret_name: SecretName = Field(description="A Secret in the job's namespace, given to the pods as environment.")


class Checkpoints(Record):
    """Where and how often the job's state is committed."""

    uri: CheckpointUri = Field(
        description="Bucket and prefix: s3://, gs:// or az://; file:/// is a volume that all pods and the controller "
        "mount at that path. A path, relative to the job's file, is for `spotladder run` only."
    )
    interval: Interval = Field(default="5m", description="How often to commit: a duration (5m) or steps (50steps).")
    keep: WholeNumber = Field(
        default=3,
        ge=1,
        description="How many of the newest commits are kept. Until the job ends, the newest of each attempt is too.",
    )
    credentials: CheckpointCredentials | None = Field(
        default=None, description="Credentials for the bucket; without it, the pods' own identity is used."
    )


class CopiedKind(StrEnum):
    """What can be copied to a tier's cluster."""

    SECRET = "Secret"  # noqa: S105 – a kind
    CONFIG_MAP = "ConfigMap"
    SERVICE_ACCOUNT = "ServiceAccount"


class Copy(Record):
    """An object of the job's namespace that its pods need in every cluster."""

    kind: Annotated[CopiedKind, choice(CopiedKind)] = Field(description="Secret, ConfigMap or ServiceAccount.")
    name: FilledText = Field(description="Its name, here and there.")


class TieredJobSpec(Record):
    """What to run, on which tiers, and when to move on."""

    tiers: list[JobTier] = Field(
        min_length=1,
        max_length=MOST_TIERS,
        description="The capacity tiers in the order in which they are used; names are unique.",
    )
    recovery_timeout: Duration = Field(
        default=90.0,
        description="How long recovery inside an attempt may take after a loss, before a new attempt on the same tier.",
    )
    stall_timeout: PositiveDuration | None = Field(
        default=None,
        description="For how long a job with all its workers may go without progress; then it counts as a failure and "
        "a new attempt starts. Default: 10m, or 5 times the commit interval if that is longer.",
    )
    start_timeout: PositiveDuration = Field(
        default=1800.0,
        description="How long an attempt may take to be ready once every pod has its node and its image; then a new "
        "attempt starts on the same tier, and nothing is counted.",
    )
    contact_timeout: Duration = Field(
        default=100.0,
        description="For how long pods are not counted as lost when all nodes of the job, or most nodes of a cluster, "
        "fall silent together, or after the controller's own watch was interrupted. About twice the cluster's "
        "node-monitor-grace-period; 0s: such pods count at once.",
    )
    handover: Annotated[Handover, choice(Handover)] = Field(
        default=Handover.FENCED,
        description="When the next attempt may start: Fenced (at once, the commit log keeps the old one from writing) "
        "or WhenGone (programs that do not use the commit log).",
    )
    failure_unit: Annotated[FailureUnit, choice(FailureUnit)] = Field(
        default=FailureUnit.POD,
        description="What counts as one failure: Pod (each lost worker pod) or Interruption (all losses until the job "
        "has all its workers again).",
    )
    restart_policy: RestartPolicy = Field(
        default_factory=RestartPolicy, description="A cap on failures over all tiers."
    )
    application_failures: ApplicationFailures = Field(
        default_factory=ApplicationFailures,
        description="The program's own errors; they never change the tier.",
    )
    exhausted: Annotated[Exhausted, choice(Exhausted)] = Field(
        default=Exhausted.FAIL,
        description="After the last tier: Fail, Restart (begin again at the first) or Wait (hold nothing for the "
        "longest provisionTimeout of the tiers, then Restart).",
    )
    deadline: Timestamp | None = Field(default=None, description="When the job must be done; then it fails.")
    max_duration: PositiveDuration | None = Field(
        default=None, description="How long the job may take from its creation; then it fails."
    )
    budget: Usd | None = Field(default=None, description="USD that may be spent on nodes; then the job fails.")
    policy: PolicyChoice = Field(default_factory=PolicyChoice, description="Which policy chooses the tier.")
    grace: Duration = Field(default=90.0, description="How long an attempt may take to commit when it is to stop.")
    checkpoints: Checkpoints = Field(description="Where and how often the job's state is committed.")
    copies: list[Copy] = Field(
        default_factory=list,
        max_length=MOST_COPIES,
        description="What is copied to a tier's cluster, into the same namespace, before an attempt starts there; kept "
        "equal, and removed when no job needs it any more. Everything else that the template names must be there.",
    )
    update_strategy: Annotated[UpdateStrategy, choice(UpdateStrategy)] = Field(
        default=UpdateStrategy.NOW,
        description="When a changed workload, or changed overrides of its tier, replace the attempt: Now (commit, "
        "then a new attempt on the same tier) or AtNextAttempt (when the next attempt starts for another reason).",
    )
    suspend: Switch = Field(default=False, description="True: commit, stop, and hold nothing until it is false again.")
    workload: Workload = Field(description="What runs: exactly one of ray and jobSet.")

    @field_validator("tiers")
    @classmethod
    def _unique_names(cls, tiers: list[JobTier]) -> list[JobTier]:
        count = Counter(tier.name for tier in tiers)
        first = {tier.name: index for index, tier in reversed(list(enumerate(tiers)))}
        found = [
            Finding((index, "name"), f'"{tier.name}" is taken by tiers[{first[tier.name]}]: names of tiers are unique')
            for index, tier in enumerate(tiers)
            if count[tier.name] > 1 and first[tier.name] != index
        ]
        if found:
            raise several(found)
        return tiers


class JobMetadata(Metadata):
    """Which job it is."""

    name: JobName = Field(
        description="The job's name: lower-case letters, digits, '-'; at most 42, since RayJobs are named after it."
    )
    namespace: Name = Field(default="default", description="The job's namespace.")


class TieredJob(Record):
    """A training job that runs on an ordered list of capacity tiers and resumes from its newest commit."""

    api_version: Literal["spotladder.io/v1alpha1"] = Field(description=f"Always {API_VERSION}.")
    kind: Literal["TieredJob"] = Field(description="Always TieredJob.")
    metadata: JobMetadata = Field(description="Name and namespace.")
    spec: TieredJobSpec = Field(description="What to run, on which tiers, and when to move on.")
    status: dict[str, Any] | None = Field(default=None, description="Set by the controller; ignored in files.")
