"""TieredJob: a training job and its ordered list of capacity tiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from spotladder.api.checkpoint_fields import CheckpointUri, DiskSize, Interval
from spotladder.api.elastic import Elastic, elastic_problems
from spotladder.api.fields import (
    Count,
    Duration,
    EnvironmentName,
    FilledText,
    Finding,
    JobBudget,
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
from spotladder.api.overlap import OverlapBounds, overlap_problems
from spotladder.api.ray_workload import RayWorkload, workers_of
from spotladder.api.record import API_VERSION, Metadata, Record
from spotladder.api.workload import Workload
from spotladder.api.workload_kinds import enumerated
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
    """Resources of a worker container."""

    requests: dict[str, Quantity] = Field(
        default_factory=dict, description="Resources that the scheduler reserves for the container."
    )
    limits: dict[str, Quantity] = Field(default_factory=dict, description="Maximum resources of the container.")


class TierOverrides(Record):
    """Changes to the workload on one tier."""

    image: FilledText | None = Field(default=None, description="Image of the program containers on this tier.")
    resources: Resources | None = Field(
        default=None, description="Resources of the program containers of workers on this tier."
    )
    env: dict[EnvironmentName, PrivateText] = Field(
        default_factory=dict, description="Environment variables on this tier; they override the template's."
    )


class JobTier(Record):
    """One capacity tier of a job."""

    name: Name = Field(description="Name of the tier, unique in the job; shown in status, logs and metrics.")
    capacity_tier: Name = Field(
        description="The CapacityTier to use. In local mode: a pool of the world file.",
    )
    max_failures: WholeNumber = Field(
        default=0,
        ge=FOR_EVER,
        description=(
            "Number of worker pods that may be lost on this tier, for any reason. The next loss moves "
            "the job to the next tier. 0: the first loss moves the job. -1: unlimited."
        ),
    )
    provision_timeout: PositiveDuration = Field(
        default=600.0,
        description="How long workers may be missing for lack of capacity, at the start or after a loss, before the "
        "job "
        "moves to the next tier.",
    )
    idle_budget: Usd | None = Field(
        default=None,
        description="Maximum cost in USD of the nodes of an incomplete gang that waits for more nodes. With more, the "
        "nodes are released and the job moves to the next tier. Needs the price of the CapacityTier. Default: no "
        "limit.",
    )
    probe: Count = Field(
        default=0,
        description="Number of workers that must have a node before the others ask for theirs, so that a tier whose "
        "nodes do not join the cluster, or are reclaimed at once, costs these nodes at most. 0: all workers ask at "
        "once.",
    )
    on_insufficient_capacity: Annotated[OnInsufficientCapacity, choice(OnInsufficientCapacity)] = Field(
        default=OnInsufficientCapacity.WAIT,
        description="Reaction to a report of the provisioner that it has no capacity: wait (until provisionTimeout) or "
        "fallback (the job moves to the next tier at once).",
    )
    queue: Name | None = Field(
        default=None,
        description="LocalQueue of Kueue in the job's namespace. The attempt waits there until Kueue has quota for it. "
        "Overrides the label kueue.x-k8s.io/queue-name of the template.",
    )
    queue_timeout: PositiveDuration | None = Field(
        default=None,
        description="How long an attempt may wait for quota in a queue of Kueue before the job moves to the next tier. "
        "Default: without limit.",
    )
    surge: Switch = Field(
        default=True,
        description="Reaction to an eviction notice with time left. True: the controller starts a replacement for each "
        "noticed worker at once, and the program continues with it inside the attempt. Both nodes are paid until then. "
        "False, or where this is not possible, as for a JobSet: the job commits, and a new attempt starts.",
    )
    overrides: TierOverrides = Field(default_factory=TierOverrides, description="Changes to the workload on this tier.")


def large_probes(tiers: Sequence[JobTier], workers: int) -> dict[int, str]:
    """Why the `probe` of these tiers, by index, is wrong for a workload with this number of workers."""
    limit = f"must be at most the number of workers of the workload, {workers}"
    return {index: f"{limit}, not {tier.probe}" for index, tier in enumerate(tiers) if tier.probe > workers}


class RestartPolicy(Record):
    """Limit on failures over all tiers."""

    backoff_limit: Count | None = Field(
        default=None, description="Maximum number of failures over all tiers; with more, the job fails."
    )


class ApplicationFailures(Record):
    """Reaction to failures of the program itself."""

    limit: Count = Field(
        default=0,
        description="Number of failures of the program itself after which a new attempt starts on the same tier.",
    )


class PolicyChoice(Record):
    """The policy that chooses the tier."""

    name: PolicyName = Field(
        default="ordered",
        description=(
            "ordered (the tiers in their order), greedy, uniform-progress, adaptive or on-demand, or the name of an "
            "installed policy."
        ),
    )
    shadow: PolicyName | None = Field(
        default=None,
        description=(
            "A second policy that is evaluated but not followed. The condition Shadow has the tier that it would use, "
            "`spotladder status` estimates what it would have saved; `spotladder replay` simulates the job with it."
        ),
    )


class CheckpointCredentials(Record):
    """Credentials for the checkpoint store."""

    secret_name: SecretName = Field(
        description="Secret in the job's namespace; its keys become environment variables of the pods."
    )


class CheckpointCache(Record):
    """A volume in every pod of the job for the newest checkpoint of its ranks."""

    size_limit: DiskSize = Field(
        description="Maximum size of the volume, an emptyDir on the node's disk. Allow for two checkpoints of all "
        "ranks of a pod. With less space the cache holds fewer files.",
    )


class CheckpointPrice(Record):
    """The price of the bucket, for the cost of the job. Default of each: nothing."""

    per_gi_b_month: Usd = Field(default=0.0, alias="perGiBMonth", description="USD per GiB stored for a month.")
    per_thousand_writes: Usd = Field(default=0.0, description="USD per 1,000 objects written (PUT).")
    per_thousand_reads: Usd = Field(default=0.0, description="USD per 1,000 objects read (GET).")


class Checkpoints(Record):
    """Location, interval and retention of commits."""

    uri: CheckpointUri = Field(
        description="Bucket and prefix: s3://, gs:// or az://. file:/// names a volume that all pods and the "
        "controller "
        "mount at that path. A path relative to the job's file is only valid for `spotladder run`."
    )
    interval: Interval = Field(
        default="5m", description="Time or steps between commits: a duration (5m) or a number of steps (50steps)."
    )
    keep: WholeNumber = Field(
        default=3,
        ge=1,
        description="Number of newest commits to keep. Until the job ends, the newest commit of each attempt is also "
        "kept.",
    )
    credentials: CheckpointCredentials | None = Field(
        default=None, description="Credentials for the bucket. Default: the identity of the pods."
    )
    cache: CheckpointCache | None = Field(
        default=None,
        description="Keeps the newest checkpoint on the machines that wrote it. A restart inside the attempt copies "
        "files with the right checksums from there and downloads only the others.",
    )
    price: CheckpointPrice = Field(
        default_factory=CheckpointPrice,
        description="Price of storage and requests. They are part of the cost of the job.",
    )


class CopiedKind(StrEnum):
    """Kinds of objects that can be copied to a tier's cluster."""

    SECRET = "Secret"  # noqa: S105 – the name of a kind
    CONFIG_MAP = "ConfigMap"
    SERVICE_ACCOUNT = "ServiceAccount"


class Copy(Record):
    """An object in the job's namespace that its pods need in every cluster."""

    kind: Annotated[CopiedKind, choice(CopiedKind)] = Field(description="Secret, ConfigMap or ServiceAccount.")
    name: FilledText = Field(description="Name of the object, in all clusters.")


class TieredJobSpec(Record):
    """The workload of the job, its tiers and its limits."""

    tiers: list[JobTier] = Field(
        min_length=1,
        max_length=MOST_TIERS,
        description="Capacity tiers in order of use, with unique names.",
    )
    recovery_timeout: Duration = Field(
        default=90.0,
        description="How long recovery inside an attempt may take after a loss, before a new attempt starts on the "
        "same tier.",
    )
    stall_timeout: PositiveDuration | None = Field(
        default=None,
        description="How long a job with all workers may run without progress. Then the controller counts a failure "
        "and "
        "starts a new attempt. Default: 10m, or 5 times the commit interval if that is longer.",
    )
    hang_timeout: PositiveDuration = Field(
        default=60.0,
        description="How long a program may make no step, at least, while all of its ranks are connected; 10 median "
        "steps if that is longer. Then its ranks write their stacks, the controller counts a failure and starts a new "
        "attempt. The time doubles at each further hang of the job. Set it if the program evaluates or compiles longer "
        "between two steps.",
    )
    start_timeout: PositiveDuration = Field(
        default=1800.0,
        description="How long an attempt may take to become ready once every pod has its node and its image. Then a "
        "new "
        "attempt starts on the same tier, and no failure is counted.",
    )
    contact_timeout: Duration = Field(
        default=100.0,
        description="How long pods do not count as lost when all nodes of the job, or most nodes of a cluster, "
        "fall silent together, or after the controller's own watch was interrupted. Set about twice the cluster's "
        "node-monitor-grace-period. 0s: such pods count at once.",
    )
    handover: Annotated[Handover, choice(Handover)] = Field(
        default=Handover.FENCED,
        description="When the next attempt may start: Fenced (at once, because the commit log rejects writes of the "
        "previous attempt) or WhenGone (when the previous attempt is gone, for programs without the commit log).",
    )
    failure_unit: Annotated[FailureUnit, choice(FailureUnit)] = Field(
        default=FailureUnit.POD,
        description="Unit of a failure: Pod (each lost worker pod; those of one node or TPU slice together) or "
        "Interruption (all losses until all workers are ready again).",
    )
    restart_policy: RestartPolicy = Field(
        default_factory=RestartPolicy, description="Limit on failures over all tiers."
    )
    application_failures: ApplicationFailures = Field(
        default_factory=ApplicationFailures,
        description="Reaction to failures of the program itself. They never exhaust a tier.",
    )
    exhausted: Annotated[Exhausted, choice(Exhausted)] = Field(
        default=Exhausted.FAIL,
        description="Action after the last tier is exhausted: Fail, Restart (start again on the first tier) or Wait "
        "(hold no nodes for the longest provisionTimeout of the tiers, then Restart).",
    )
    deadline: Timestamp | None = Field(
        default=None, description="Time by which the job must be done; otherwise it fails."
    )
    max_duration: PositiveDuration | None = Field(
        default=None, description="Maximum duration of the job since its creation; then it fails."
    )
    budget: JobBudget | None = Field(default=None, description="Maximum cost of nodes in USD; then the job fails.")
    policy: PolicyChoice = Field(default_factory=PolicyChoice, description="Policy that chooses the tier.")
    grace: Duration = Field(default=90.0, description="How long an attempt may take to commit after a request to stop.")
    checkpoints: Checkpoints = Field(description="Location, interval and retention of commits.")
    copies: list[Copy] = Field(
        default_factory=list,
        max_length=MOST_COPIES,
        description="Objects that the controller copies to a tier's cluster, into the same namespace, before an "
        "attempt "
        "starts there. It updates the copies and deletes them when no job needs them. Other objects that the template "
        "names must exist there.",
    )
    update_strategy: Annotated[UpdateStrategy, choice(UpdateStrategy)] = Field(
        default=UpdateStrategy.NOW,
        description="When a change of the workload, or of the current tier's overrides, replaces the attempt: Now "
        "(commit, then a new attempt on the same tier) or AtNextAttempt (when the next attempt starts for another "
        "reason).",
    )
    overlap: OverlapBounds | None = Field(
        default=None,
        description="Planned moves (the policy's return to a cheaper tier, a changed workload with updateStrategy: "
        "Now), and eviction notices that end the attempt, start the next attempt as a standby beside the running one, "
        "which trains until the standby is ready. With hedgeAfter, so does a wait for capacity. Both are paid until "
        "then. Needs handover: Fenced. Default: the running attempt stops first.",
    )
    elastic: Elastic | None = Field(
        default=None,
        description="Numbers of workers with which the job may train. After a loss the program restarts with the "
        "remaining workers, inside the attempt, and with more when nodes are available again. Needs Ray Train with "
        "train.ray_scaling_config. Default: the job trains with all workers or waits.",
    )
    suspend: Switch = Field(
        default=False, description="True: the job commits, stops, and holds no nodes until the field is false."
    )
    workload: Workload = Field(description=f"Program of the job: exactly one of {enumerated()}.")

    @field_validator("tiers")
    @classmethod
    def _unique_names(cls, tiers: list[JobTier]) -> list[JobTier]:
        count = Counter(tier.name for tier in tiers)
        first = {tier.name: index for index, tier in reversed(list(enumerate(tiers)))}
        found = [
            Finding(
                (index, "name"),
                f'"{tier.name}" is already the name of tiers[{first[tier.name]}]: tier names must be unique',
            )
            for index, tier in enumerate(tiers)
            if count[tier.name] > 1 and first[tier.name] != index
        ]
        if found:
            raise several(found)
        return tiers

    @model_validator(mode="after")
    def _overlap_can_work(self) -> TieredJobSpec:
        timeouts = [tier.provision_timeout for tier in self.tiers]
        if self.overlap is not None and (found := overlap_problems(self.overlap, self.handover, timeouts)):
            raise several(found)
        return self

    @model_validator(mode="after")
    def _probes_are_parts_of_the_gang(self) -> TieredJobSpec:
        ray = self.workload.of(RayWorkload)
        if ray is not None and (found := large_probes(self.tiers, workers_of(ray.template.spec))):
            raise several([Finding(("tiers", index, "probe"), message) for index, message in found.items()])
        return self

    @model_validator(mode="after")
    def _elastic_can_work(self) -> TieredJobSpec:
        if self.elastic is not None and (found := elastic_problems(self.elastic, self.workload, self.handover)):
            raise several(found)
        return self


class JobMetadata(Metadata):
    """Metadata of a TieredJob."""

    name: JobName = Field(
        description="Name of the job: at most 42 lower-case letters, digits, '-', since RayJob names are derived from "
        "it."
    )
    namespace: Name = Field(default="default", description="Namespace of the job.")


class TieredJob(Record):
    """A training job that runs on an ordered list of capacity tiers and resumes from its newest commit."""

    api_version: Literal["spotladder.io/v1alpha1"] = Field(description=f"Always {API_VERSION}.")
    kind: Literal["TieredJob"] = Field(description="Always TieredJob.")
    metadata: JobMetadata = Field(description="Name and namespace.")
    spec: TieredJobSpec = Field(description="Workload, tiers and limits of the job.")
    status: dict[str, Any] | None = Field(default=None, description="Set by the controller; ignored in files.")
