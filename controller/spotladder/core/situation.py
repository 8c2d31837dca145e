"""Facts that follow from the spec, the state and the observation. Decides and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core.history.losses import all_suspect, head_lost
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    Handover,
    Instant,
    JobSpec,
    JobState,
    Loss,
    Observation,
    PodPhase,
    PodRole,
    PodSeen,
    QueueSeen,
    Seconds,
    Stage,
    StandbyChange,
    Tier,
    TierChoice,
)
from spotladder.core.model.gang import (
    gang_placed,
    gang_refused,
    gang_running,
    launched_workers,
    misfit_lasts,
    required_ready,
    required_workers,
)
from spotladder.core.policies import Policy
from spotladder.core.reasons import Cause, Reason

LIVE = frozenset({Stage.STARTING, Stage.RUNNING, Stage.REPLACING, Stage.RECOVERING})
"""Stages with an attempt that is not being ended."""

READY = frozenset({Stage.RUNNING, Stage.REPLACING})
"""Stages in which all workers of the attempt are ready."""

HANDOVER_GRACE_PERIOD: Seconds = 10.0
"""Time that the next attempt waits for the end of a fenced attempt."""

MAINTENANCE_LIMIT: Seconds = 600.0
"""Maximum time that the drain of a node by an administrator waits for the job's pods: their disruption budget refuses
the eviction, and the node upgrades of clouds wait for it for 15 minutes or longer."""

AVOIDANCE_TIMEOUT: Seconds = 60.0
"""Time that an attempt waits until a node that it does not avoid can take its pods, unless the provisioner reports that
it adds one. Autoscalers report this within seconds."""

MISFIT_TIMEOUT: Seconds = 60.0
"""Time after which an attempt leaves a tier whose provisioner reports that it creates no node for its pods. Such a
report may be from before a change of the node pools."""

STEP_DELAY: Seconds = 10.0
"""Maximum delay from a step until its heartbeat is observed."""

REMOVAL_DELAY: Seconds = 3.0
"""Time from the request to continue without a pod until the pod is removed. A kubelet shows a pod no new notice once
the pod is being deleted."""


NO_CHOICE = TierChoice(None)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a decision has changed so far, beside the stage: the counted failures, the standby attempts that were
    planned or given up, and the policy's newest choice. `replanned`: the plan of an attempt changed without a change of
    the stage: with the spec before its launch, by a step of a replacement, or by a standby attempt."""

    losses: tuple[Loss, ...] = ()
    standby: tuple[StandbyChange, ...] = ()
    choice: TierChoice = NO_CHOICE
    replanned: bool = False


NO_CHANGES = Changes()


@dataclass(frozen=True, slots=True)
class Situation:
    """All facts that a decision may use. Only a decision has a `policy` and `changes`."""

    spec: JobSpec
    state: JobState
    seen: Observation
    now: Instant
    policy: Policy | None = None
    changes: Changes = NO_CHANGES

    @property
    def attempt(self) -> Attempt:
        """The live attempt, in a stage that has one."""
        if self.state.attempt is None:  # The transition table allows no such stage without an attempt.
            raise AssertionError(f"stage {self.state.stage} without an attempt")
        return self.state.attempt

    @property
    def outlived_loss(self) -> bool:
        """Whether the program has not restarted since a pod was last counted as lost. Then the lost pod's rank still
        takes part (its node was only cut off), and its end is what ends the program."""
        start, progress = self.attempt.known.lost_start, self.seen.progress
        return start is not None and progress.start == start and progress.attempt == self.attempt.number

    @property
    def attempt_seen(self) -> AttemptSeen | None:
        """The live attempt as observed; None if it does not exist or cannot be observed."""
        return self.seen.attempt(self.state.attempt.number) if self.state.attempt else None

    @property
    def tier(self) -> Tier | None:
        """The job's tier, if the spec still has it."""
        return self.spec.tier(self.state.tier)

    @property
    def workers(self) -> int:
        """The number of worker pods that the live attempt was launched with."""
        return launched_workers(self.state.attempt, self.spec)

    @property
    def needed(self) -> int:
        """The number of workers that the live attempt needs."""
        return required_workers(self.state.attempt, self.attempt_seen, self.spec)

    @property
    def elastic(self) -> bool:
        """Whether the live attempt can train with fewer workers than it was launched with."""
        return self.needed < self.workers

    @property
    def pending_update(self) -> str:
        """How the spec's pod template differs from that of the live attempt; "" if it does not."""
        attempt, tier = self.state.attempt, self.tier
        if attempt is None or tier is None or attempt.template == tier.template:
            return ""
        if self.workers != self.spec.workers:
            return f"the spec's pods changed (workers {self.workers} → {self.spec.workers})"
        return "the spec's pods changed"

    @property
    def reachable(self) -> bool:
        """Whether objects that are not observed are known not to exist."""
        seen = self.attempt_seen
        return seen.reachable if seen is not None else self.state.tier not in self.seen.unavailable

    @property
    def held_by(self) -> QueueSeen | None:
        """The admission queue that holds the live attempt; None when none does."""
        seen = self.attempt_seen
        queue = seen.queue if seen is not None and seen.reachable and self.state.stage in LIVE else None
        return queue if queue is not None and queue.held else None

    @property
    def all_pods_ready(self) -> bool:
        """Whether the head and every worker that the live attempt needs are running and ready."""
        return required_ready(self.state.attempt, self.attempt_seen, self.spec)

    @property
    def trains_unready(self) -> bool:
        """Whether all pods that the attempt needs run and its program makes progress, which outweighs a pod that is not
        ready: since the recovery, or the attempt, began, or otherwise within recoveryTimeout."""
        began, moved = self.attempt.created_at, self.last_move
        if self.state.stage is not Stage.STARTING:
            began = max(began, self.state.timers.recovering_since or self.now - self.spec.recovery_timeout)
        return moved is not None and moved > began and gang_running(self.attempt_seen, self.needed)

    @property
    def last_move(self) -> Instant | None:
        """When the program of the live attempt last made progress; None if that is unknown."""
        seen, attempt, progress = self.attempt_seen, self.attempt, self.seen.progress
        times = [
            seen.moved_at if seen is not None else None,
            attempt.steps[-1].last_at - STEP_DELAY if attempt.steps else None,
            progress.committed_at if progress.attempt == attempt.number else None,
        ]
        return max((time for time in times if time is not None), default=None)

    @property
    def unready_deadline(self) -> Instant | None:
        """When progress no longer outweighs a pod that is not ready; None while every pod is ready."""
        moved = None if self.all_pods_ready else self.last_move
        return None if moved is None else moved + self.spec.recovery_timeout

    @property
    def can_commit(self) -> bool:
        """Whether a pod of the attempt can still commit."""
        seen = self.attempt_seen
        if seen is None or not seen.reachable:
            return not self.reachable
        workers = any(pod.phase is PodPhase.RUNNING for pod in seen.pods if pod.role is PodRole.WORKER)
        return workers and not head_lost(seen)

    @property
    def leaving(self) -> list[PodSeen]:
        """The pods of the live attempt that are being replaced and still run."""
        seen, going = self.attempt_seen, self.attempt.notice.leaving
        return [pod for pod in seen.pods if pod.uid in going and pod.phase is PodPhase.RUNNING] if seen else []

    @property
    def handing_over_deadline(self) -> Instant | None:
        """When the program must have continued without the leaving pods; None before the handover."""
        since = self.attempt.notice.handing_over_since
        return None if since is None else since + self.spec.grace

    @property
    def removal_due(self) -> Instant | None:
        """When the leaving pods are removed; None before the handover."""
        since = self.attempt.notice.handing_over_since
        return None if since is None else since + REMOVAL_DELAY

    @property
    def replacement_due(self) -> Instant | None:
        """The time by which the next step of a replacement is due."""
        if self.attempt.notice.handing_over_since is None:
            return self.attempt.notice.replace_by
        return self.handing_over_deadline if self.passed(self.removal_due) else self.removal_due

    def gone_at(self, pod: PodSeen) -> Instant:
        """When a noticed pod will be gone: as announced, else after the notice of its cloud, else after the grace.
        Maintenance waits for another node as long as the tier does, within a limit."""
        if pod.notice_ends_at is not None:
            return pod.notice_ends_at
        if pod.cause is Cause.MAINTENANCE and self.tier is not None:
            return self.now + max(self.spec.grace, min(MAINTENANCE_LIMIT, self.tier.provision_timeout))
        if pod.cause not in (Cause.INTERRUPTION, Cause.UNKNOWN) or self.tier is None or not self.tier.notice:
            return self.now + self.spec.grace
        return (self.now if pod.noticed_at is None else min(self.now, pod.noticed_at)) + self.tier.notice

    @property
    def notice_reason(self) -> Reason:
        """The reason for which the live attempt ends after its notices: maintenance if no node is reclaimed or lost."""
        pods = self.attempt_seen.pods if self.attempt_seen else ()
        causes = {pod.cause for pod in pods if pod.noticed or pod.phase is PodPhase.LOST}
        return Reason.MAINTENANCE if causes == {Cause.MAINTENANCE} else Reason.EVICTION_NOTICE

    @property
    def notices_withdrawn(self) -> bool:
        """Whether all workers are ready and no node of the live attempt is noticed or suspected any more."""
        pods = self.attempt_seen.pods if self.attempt_seen and self.reachable else ()
        return self.all_pods_ready and not any(pod.noticed or pod.suspect for pod in pods)

    @property
    def waits_for_capacity(self) -> bool:
        """Whether pods cannot be placed, so that a new attempt would find no capacity either."""
        seen = self.attempt_seen
        if seen is None or (self.elastic and self.all_placed):
            return False
        return any(pod.unschedulable and pod.role is not PodRole.AUXILIARY for pod in seen.pods)

    @property
    def refused(self) -> bool:
        """Whether the provisioner makes no node for the head, or for enough of the workers that the attempt needs."""
        held = self.held_by
        return gang_refused(self.attempt_seen, self.needed) or (held is not None and held.refused)

    @property
    def all_placed(self) -> bool:
        """Whether the head and every worker that the attempt needs have a node with their image, so that capacity is
        not missing."""
        return gang_placed(self.attempt_seen, self.needed)

    @property
    def paused(self) -> bool:
        """Whether the job pauses before its next attempt."""
        until = self.state.timers.paused_until
        return until is not None and self.now < until

    @property
    def last_progress(self) -> Instant:
        """When all pods last became ready, or the job last committed, by the decider's own clock.

        While the checkpoint store is unavailable nothing can be committed. Then a step of the program counts, if the
        backend observes steps.
        """
        attempt, seen = self.attempt, self.attempt_seen
        moved = seen.moved_at if seen is not None and seen.store_unavailable_since is not None else None
        times = (attempt.all_ready_at, self.state.progress_at, moved)
        return max((attempt.created_at, *(time for time in times if time is not None)))

    # --- deadlines: each is when its timer expires; None while the timer does not run ---

    @property
    def provision_deadline(self) -> Instant | None:
        """When provisionTimeout expires. `suspending` moves `waiting_since`."""
        since, tier = self.state.timers.waiting_since, self.tier
        return None if since is None or tier is None else since + tier.provision_timeout

    @property
    def avoidance_deadline(self) -> Instant | None:
        """When the live attempt ends because it avoids nodes and no other node can take its pods. provisionTimeout
        applies instead while a node is being added."""
        attempt, seen, since = self.state.attempt, self.attempt_seen, self.state.timers.waiting_since
        if attempt is None or not attempt.avoids or since is None or not self.waits_for_capacity:
            return None
        if seen is not None and seen.provisioning:
            return None
        return max(since, attempt.created_at) + AVOIDANCE_TIMEOUT

    @property
    def misfit_deadline(self) -> Instant | None:
        """When the live attempt leaves its tier because its pods fit no node of it and waiting does not help; None: it
        waits for provisionTimeout."""
        if (
            self.state.timers.waiting_since is None
            or self.attempt.avoids
            or not misfit_lasts(self.attempt_seen, self.needed)
        ):
            return None
        return self._since(Reason.POD_DOES_NOT_FIT) + MISFIT_TIMEOUT

    @property
    def recovery_deadline(self) -> Instant | None:
        """When recoveryTimeout expires."""
        since = self.state.timers.recovering_since
        return None if since is None else since + self.spec.recovery_timeout

    @property
    def start_deadline(self) -> Instant:
        """When startTimeout expires, or would expire if it started now."""
        return self._since(Reason.WAITING_FOR_PODS) + self.spec.start_timeout

    @property
    def queue_deadline(self) -> Instant | None:
        """When queueTimeout expires, or would expire if it began now; None: never."""
        tier = self.tier
        if tier is None or tier.queue_timeout is None:
            return None
        return self._since(Reason.WAITING_FOR_QUOTA, Reason.INADMISSIBLE) + tier.queue_timeout

    @property
    def contact_deadline(self) -> Instant:
        """When contactTimeout expires, or would expire if it started now."""
        return self._since(Reason.CONTACT_LOST) + self.spec.contact_timeout

    @property
    def stall_deadline(self) -> Instant | None:
        """When stallTimeout expires; None once the last step is committed, while its queue ends its pods, and for a
        program that does not use the library: it commits nothing."""
        if self.finished or self.held_by is not None or not self.uses_library:
            return None
        return self.last_progress + self.spec.stall_timeout

    def silence_deadline(self, limit: Seconds) -> Instant | None:
        """The time by which a program without a start entry must have shown progress, `limit` after the last one; None
        once it uses the library, and while its queue ends its pods."""
        if self.uses_library or self.held_by is not None:
            return None
        return self.last_progress + limit

    @property
    def attribution_deadline(self) -> Instant | None:
        """The end of the failure attribution window: after it, a failure of the program counts as its own."""
        exited_at = self.state.attempt.exited_at if self.state.attempt else None
        return None if exited_at is None else exited_at + self.spec.attribution_window

    @property
    def handover_deadline(self) -> Instant | None:
        """When the next attempt starts although the ending one is not confirmed gone; None: the next attempt waits.
        Nodes that are all silent confirm nothing."""
        since = self.state.attempt.ending.since if self.state.attempt else None
        if since is None or not self.fences:
            return None
        return since if all_suspect(self.attempt_seen) else since + HANDOVER_GRACE_PERIOD

    @property
    def uses_library(self) -> bool:
        """Whether a program of the job has shown that it uses the library: by a start entry in the log, by a heartbeat,
        or by the number of its steps."""
        seen = self.attempt_seen
        if self.seen.progress.attempt > 0 or self.state.measured.total > 0:
            return True
        if seen is None:
            return False
        shown = seen.moved_at is not None or seen.store_unavailable_since is not None
        return shown or seen.step > 0 or seen.total > 0 or bool(seen.hung) or seen.held is not None

    @property
    def fences(self) -> bool:
        """Whether the next attempt may start before the live one is gone. The commit log does not fence a program that
        runs and has never written to it."""
        attempt = self.state.attempt
        has_run = attempt is not None and attempt.running_at is not None
        return self.spec.handover is Handover.FENCED and (self.uses_library or not has_run)

    def passed(self, deadline: Instant | None) -> bool:
        """Whether this timer runs and has expired."""
        return deadline is not None and self.now >= deadline

    def _since(self, *reasons: Reason) -> Instant:
        """The time since which the job is impeded for one of these reasons; now if it is not."""
        impeded = self.state.impeded
        return impeded.since if impeded is not None and impeded.reason in reasons else self.now

    @property
    def finished(self) -> bool:
        """Whether the last step is committed: the program may still evaluate, but commits nothing more."""
        return 0 < self.seen.progress.total <= self.seen.progress.step

    @property
    def foreign_owner(self) -> bool:
        """Whether the log has an attempt that this controller never planned."""
        return self.seen.progress.attempt > max(self.attempt.number, self.state.last_number)

    @property
    def open(self) -> frozenset[str]:
        """Names of the tiers that are not exhausted."""
        return frozenset(tier.name for tier in self.spec.tiers if self.state.record(tier.name).exhausted_by is None)

    def may_use(self, tier: str) -> bool:
        """Whether this tier is not exhausted, and not known to be unusable now."""
        return tier in self.open and tier not in self.seen.unavailable
