"""TieredJob: a training job and its ordered list of capacity tiers."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from spotladder.api.checkpoint_fields import CheckpointUri, DiskSize, Interval, ProgramFolder
from spotladder.api.elastic import Elastic, elastic_problems
from spotladder.api.fields import (
    Budget,
    Count,
    Duration,
    Finding,
    JobName,
    Name,
    PolicyName,
    PositiveDuration,
    SecretName,
    Switch,
    Timestamp,
    Usd,
    WholeNumber,
    choice,
    several,
)
from spotladder.api.group_problems import group_problems
from spotladder.api.job_tier import JobTier
from spotladder.api.overlap import OverlapBounds, overlap_problems
from spotladder.api.ray_workload import RayWorkload, workers_of
from spotladder.api.record import API_VERSION, Metadata, Record
from spotladder.api.source import Source
from spotladder.api.train import Train, workload_of_train
from spotladder.api.workload import Workload
from spotladder.api.workload_kinds import enumerated
from spotladder.core.model import (
    Exhausted,
    FailureUnit,
    Handover,
    UpdateStrategy,
)

MAX_TIERS = 32


class CheckpointCredentials(Record):
    """Credentials for the checkpoint store."""

    secret_name: SecretName = Field(
        description="Secret in the job's namespace; its keys become environment variables of the pods."
    )


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
    program_folder: ProgramFolder | None = Field(
        default=None,
        description="Folder in which a program without spotladder.train saves its checkpoints, absolute or relative "
        "to its working directory. In an argument of the program, {checkpoint} is the path of the "
        "newest; without a commit the argument is left out. The image needs the Python package "
        "spotladder.",
    )
    credentials: CheckpointCredentials | None = Field(
        default=None, description="Credentials for the bucket. Default: the identity of the pods."
    )
    cache: DiskSize | None = Field(
        default=None,
        description="Size of a volume (an emptyDir) that keeps the newest checkpoint on the machines that wrote it, "
        "for restarts inside the attempt. Allow for two checkpoints of all ranks of a pod.",
    )
    storage_per_gi_b_month: Usd | None = Field(
        default=None,
        alias="storagePerGiBMonth",
        description="USD per GiB stored in the bucket for a month, for the cost of the job. Default: nothing.",
    )


class PodSecurity(StrEnum):
    """Kubernetes' Pod Security Standards that the pods of a job keep by default."""

    BASELINE = "baseline"
    RESTRICTED = "restricted"


class TieredJobSpec(Record):
    """The workload of the job, its tiers and its limits."""

    tiers: list[JobTier] = Field(
        min_length=1,
        max_length=MAX_TIERS,
        description="Capacity tiers in order of use, with unique names.",
    )
    recovery_timeout: Duration = Field(
        default=90.0,
        description="How long recovery inside an attempt may take after a loss, before a new attempt starts on the "
        "same tier.",
    )
    stall_timeout: PositiveDuration | None = Field(
        default=None,
        description="How long a job with all workers may run without a new commit, before the controller counts a "
        "failure and starts a new attempt. If you set it, a program without spotladder.train may print "
        "nothing for twelve times as long. Default: 10m, or 5 times the commit interval if that is "
        "longer; with checkpoints.programFolder 24h.",
    )
    hang_timeout: PositiveDuration = Field(
        default=60.0,
        description="How long a program with all ranks connected may make no step, at least 10 median steps, before "
        "one failure counts and a new attempt starts. The time doubles at each further hang. Set it if "
        "the program evaluates or compiles longer between two steps.",
    )
    start_timeout: PositiveDuration = Field(
        default=1800.0,
        description="How long an attempt may take to become ready once every pod has its node and its image. Then a "
        "new attempt starts on the same tier, without a failure.",
    )
    contact_timeout: Duration = Field(
        default=100.0,
        description="How long pods do not count as lost when all nodes of the job, or most of a cluster, fall silent"
        " together. Set about twice the cluster's node-monitor-grace-period.",
    )
    handover: Annotated[Handover, choice(Handover)] = Field(
        default=Handover.FENCED,
        description="When the next attempt may start: Fenced (at once, behind the commit log) or WhenGone (when the "
        "previous attempt is gone, for programs without the commit log).",
    )
    failure_unit: Annotated[FailureUnit, choice(FailureUnit)] = Field(
        default=FailureUnit.POD,
        description="Unit of a failure: Pod (each lost worker pod; those of one node or TPU slice together) or "
        "Interruption (all losses until all workers are ready again).",
    )
    backoff_limit: Count | None = Field(
        default=None, description="Maximum number of failures over all tiers; with more, the job fails."
    )
    application_failures: Count = Field(
        default=0,
        description="Number of failures of the program itself after which a new attempt starts on the same tier. They "
        "never exhaust a tier.",
    )
    exhausted: Annotated[Exhausted, choice(Exhausted)] = Field(
        default=Exhausted.FAIL,
        description="After the last tier is exhausted: Fail, Restart (on the first tier) or Wait (hold no nodes for "
        "the longest provisionTimeout, then Restart).",
    )
    deadline: Timestamp | None = Field(
        default=None, description="Time by which the job must be done; otherwise it fails."
    )
    max_duration: PositiveDuration | None = Field(
        default=None, description="Maximum duration of the job since its creation; then it fails."
    )
    budget: Budget | None = Field(default=None, description="Maximum cost of nodes in USD; then the job fails.")
    policy: PolicyName = Field(
        default="ordered",
        description="Policy that chooses the tier: ordered, greedy, uniform-progress, adaptive, on-demand, or an "
        "installed one.",
    )
    grace: Duration = Field(default=90.0, description="How long an attempt may take to commit after a request to stop.")
    checkpoints: Checkpoints = Field(description="Location, interval and retention of commits.")
    update_strategy: Annotated[UpdateStrategy, choice(UpdateStrategy)] = Field(
        default=UpdateStrategy.NOW,
        description="When a change of the workload, or of the current tier's overrides, replaces the attempt: Now or"
        " AtNextAttempt (when the next attempt starts for another reason).",
    )
    overlap: OverlapBounds | None = Field(
        default=None,
        description="At planned moves and notices that end the attempt, the next attempt boots beside the running "
        "one, which trains until then. Needs handover: Fenced. Default: the running attempt stops first.",
    )
    elastic: Elastic | None = Field(
        default=None,
        description="Numbers of workers with which the job may train. Needs Ray Train with train.ray_scaling_config."
        " Default: all workers.",
    )
    pod_security: Annotated[PodSecurity, choice(PodSecurity)] = Field(
        default=PodSecurity.BASELINE,
        description="Security settings of containers that have none in the template: baseline (root works) or "
        "restricted (no capabilities, no root).",
    )
    suspend: Switch = Field(
        default=False, description="True: the job commits, stops, and holds no nodes until the field is false."
    )
    source: Source | None = Field(
        default=None,
        description="Files of the program that its image does not have. Set by `spotladder submit --working-dir`; "
        "`spotladder run` uses the folder of the job's file.",
    )
    train: Train | None = Field(
        default=None,
        exclude=True,
        description="Short form of workload, only in files: `spotladder submit` and `spotladder validate --show` "
        "expand it.",
    )
    workload: Workload = Field(description=f"Program of the job: exactly one of {enumerated()}.")

    @model_validator(mode="before")
    @classmethod
    def _expand_train(cls, spec: Any) -> Any:
        if not isinstance(spec, dict) or spec.get("train") is None:
            return spec
        if "workload" in spec:
            raise several([Finding(("train",), "is the short form of workload: remove one of them", at_key=True)])
        try:
            train = Train.model_validate(spec["train"])
        except ValidationError:
            train = Train(script="train.py")  # The field reports the error.
        return {**spec, "workload": workload_of_train(train)}

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
    def _groups_can_work(self) -> TieredJobSpec:
        if found := group_problems([tier.groups for tier in self.tiers], self.workload):
            raise several(found)
        return self

    @property
    def capacity_names(self) -> tuple[str, ...]:
        """The names of the CapacityTiers: for each tier its own, then those of its groups."""
        groups = ((tier, tier.groups.values()) for tier in self.tiers)
        return tuple(
            name for tier, beside in groups for name in (tier.capacity_tier, *(g.capacity_tier for g in beside))
        )

    @property
    def elsewhere(self) -> frozenset[str]:
        """The groups of the workload that have a CapacityTier of their own. Those that would be on the tier otherwise
        have one on every tier."""
        return frozenset(self.tiers[0].groups)

    @property
    def ray_workers(self) -> int:
        """The number of workers of a Ray workload, which are its pods on the tier; 0 for another workload."""
        ray = self.workload.of(RayWorkload)
        return 0 if ray is None else workers_of(ray.template.spec, self.elsewhere)

    @model_validator(mode="after")
    def _overlap_can_work(self) -> TieredJobSpec:
        timeouts = [tier.provision_timeout for tier in self.tiers]
        if self.overlap is not None and (found := overlap_problems(self.overlap, self.handover, timeouts)):
            raise several(found)
        return self

    @model_validator(mode="after")
    def _elastic_can_work(self) -> TieredJobSpec:
        if self.elastic is None:
            return self
        if self.checkpoints.program_folder is not None:
            message = "cannot be used by an elastic job, whose program uses spotladder.train: remove it, or elastic"
            raise several([Finding(("checkpoints", "programFolder"), message, at_key=True)])
        if found := elastic_problems(self.elastic, self.workload, self.handover, self.ray_workers):
            raise several(found)
        return self


class JobMetadata(Metadata):
    """Metadata of a TieredJob."""

    name: JobName = Field(description="Name of the job: at most 42 lower-case letters, digits, '-'.")
    namespace: Name = Field(default="default", description="Namespace of the job.")


class TieredJob(Record):
    """A training job that runs on an ordered list of capacity tiers and resumes from its newest commit."""

    api_version: Literal["spotladder.io/v1alpha1"] = Field(description=f"Always {API_VERSION}.")
    kind: Literal["TieredJob"] = Field(description="Always TieredJob.")
    metadata: JobMetadata = Field(description="Name and namespace.")
    spec: TieredJobSpec = Field(description="Workload, tiers and limits of the job.")
    status: dict[str, Any] | None = Field(default=None, description="Set by the controller; ignored in files.")
