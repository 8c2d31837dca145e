"""Prometheus metrics: counters of persisted decisions, and gauges of every job at the time of the scrape."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric

from spotladder.clusters.clock import Clock
from spotladder.clusters.transport import Watcher
from spotladder.core.facts.deadline_risk import deadline_risk
from spotladder.core.history.bad_nodes import bad_nodes
from spotladder.core.history.grants import answers
from spotladder.core.model import (
    TERMINAL,
    Decision,
    ExtraCosts,
    Instant,
    JobSpec,
    JobState,
    Move,
    Phase,
    Seconds,
    Stage,
)
from spotladder.core.reasons import Reason
from spotladder.core.situation import READY
from spotladder.operator.inventory.inventory import JobKey

_PASS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
_FALLBACK = (1.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


MAX_TIERS = 500
"""Number of tier names that metrics tell apart. Jobs choose them, so nothing else limits the number of series."""

OTHER_TIERS = "other"
"""The label of tiers beyond MAX_TIERS."""


_JOB_GAUGES = (
    ("spotladder_job_progress_ratio", "ratio", "Committed share of all steps, 0 to 1."),
    ("spotladder_job_attempts", "attempts", "Number of attempts so far."),
    ("spotladder_job_budget_ratio", "budget_ratio", "Spent share of spec.budget."),
    (
        "spotladder_job_deadline_slack_seconds",
        "slack",
        "Seconds until the deadline that neither the work that is left nor one more start needs.",
    ),
)
"""The metrics with one number for each job, and its field in JobGauges."""


@dataclass(frozen=True, slots=True)
class JobGauges:
    """One job as of its last reconcile. `uncommitted_since`: the newest commit or, without one, when the job first had
    all its workers. `tiers`: the names of its tiers. `bad_nodes`: the nodes on which its pods fail repeatedly. `slack`
    is that of `deadline_risk`. A job that has ended has none of these three, and no `budget_ratio`. `problems` are the
    reasons why the job is degraded."""

    phase: Phase
    ratio: float
    uncommitted_since: Instant | None
    tiers: tuple[str, ...]
    bad_nodes: tuple[str, ...]
    attempts: int
    budget_ratio: float | None
    slack: Seconds | None
    problems: frozenset[str]


class Metrics:
    """All metrics of one controller, in its own registry."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        self._jobs: dict[JobKey, JobGauges] = {}
        self._unready: dict[JobKey, Instant] = {}  # since when not all workers are ready, of jobs that had them ready
        self._tiers: set[str] = set()
        self._available: dict[str, bool] = {}
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.attempts = counter("spotladder_attempts", "Attempts that ended.", ["tier", "reason"])
        self.failures = counter("spotladder_failures", "Pods lost.", ["tier", "cause"])
        self.fallbacks = counter("spotladder_fallbacks", "Moves to a later tier.", ["from", "to", "reason"])
        self.standby_attempts = counter(
            "spotladder_standby_attempts", "Standby attempts that started, or were given up.", ["tier", "reason"]
        )
        self.replacements = counter(
            "spotladder_replacements", "Pods whose replacement inside the attempt was requested.", ["tier"]
        )
        self.hangs = counter("spotladder_hangs", "Attempts that ended because the program hung.", ["tier"])
        self.suspected_nodes = counter(
            "spotladder_suspected_nodes",
            "Silent nodes that the controller suspected before Kubernetes marked them.",
            ["cluster"],
        )
        self.fallback_seconds = histogram(
            "spotladder_fallback_seconds",
            "Seconds from the first missing worker until all workers are ready again.",
            buckets=_FALLBACK,
        )
        self.cost = counter("spotladder_cost_usd", "USD spent on workers' nodes.", ["capacity_type"])
        self.namespace_cost = counter(
            "spotladder_namespace_cost_usd", "USD spent by the jobs of a namespace.", ["namespace"]
        )
        self.extra_cost = counter(
            "spotladder_extra_cost_usd",
            "USD spent beside workers' nodes, by kind: heads, storage or egress.",
            ["kind"],
        )
        self.saved = counter("spotladder_saved_usd", "USD that the same nodes would cost in addition on demand.")
        self.passes = histogram(
            "spotladder_reconcile_seconds", "Duration of one reconcile of a TieredJob in seconds.", buckets=_PASS
        )
        self.failed_passes = counter("spotladder_reconcile_errors", "Passes that failed.", ["error"])
        self.requests = counter("spotladder_api_requests", "Calls.", ["cluster", "verb", "resource", "code"])
        self.cluster_up = gauge("spotladder_cluster_up", "1 while the cluster can be used.", ["cluster"])
        self.leading = gauge("spotladder_leading", "1 while this controller leads.")
        self.queue_depth = gauge("spotladder_queue_depth", "Jobs that wait for a reconcile.")
        self.registry.register(self)

    def watcher(self, cluster: str, also: Watcher | None = None) -> Watcher:
        """Counts the API calls of a cluster by status (0: no response), and forwards the status to another callback."""

        def heard(verb: str, resource: str, status: int) -> None:
            self.requests.labels(cluster, verb, resource, str(status)).inc()
            if also is not None:
                also(verb, resource, status)

        return heard

    def observe(self, key: JobKey, spec: JobSpec, state: JobState, problems: Iterable[str] = ()) -> None:
        """Record one reconcile of a job, which is degraded for these reasons."""
        progress, risk, ended = state.progress, deadline_risk(spec, state), state.stage in TERMINAL
        ratio = progress.step / progress.total if progress.total else 0.0
        self._jobs[key] = JobGauges(
            state.phase,
            min(1.0, ratio),
            _uncommitted_since(state),
            () if ended else tuple(tier.name for tier in spec.tiers),
            () if ended else bad_nodes(state),
            state.number,
            state.spent_usd / spec.budget if spec.budget and not ended else None,
            None if risk is None else risk.slack,
            frozenset(problems),
        )

    def forgot(self, key: JobKey) -> None:
        """The job is gone."""
        self._jobs.pop(key, None)
        self._unready.pop(key, None)

    def term_over(self) -> None:
        """Another controller leads now: this one's gauges of jobs are outdated. Counters are kept."""
        self._jobs.clear()
        self._unready.clear()
        self._available.clear()
        self.cluster_up.clear()
        self.queue_depth.set_function(lambda: 0)
        self.leading.set(0)

    def decided(self, key: JobKey, spec: JobSpec, before: JobState, decision: Decision) -> None:
        """Record a persisted decision."""
        for loss in decision.losses:
            self.failures.labels(self._tier(loss.tier), loss.cause).inc()
        for move in decision.moves:
            self._moved(key, before, move)
        for answer in answers(before, decision):
            if answer.move is not None:
                self._available[self._tier(answer.tier)] = answer.granted
        for change in decision.standby_changes:
            self.standby_attempts.labels(self._tier(change.tier), change.reason).inc()
        if leaving := _leaving(before, decision.state):
            self.replacements.labels(self._tier(decision.state.tier)).inc(leaving)
        if hangs := max(0, decision.state.hangs - before.hangs):
            self.hangs.labels(self._tier(before.tier)).inc(hangs)
        ended = {record.number for record in before.history}
        for record in decision.state.history:
            if record.number not in ended:
                self.attempts.labels(self._tier(record.tier), record.reason).inc()
        self._paid(key[0], spec, before, decision.state)

    def _tier(self, name: str) -> str:
        """The label of a tier."""
        if name not in self._tiers and len(self._tiers) >= MAX_TIERS:
            return OTHER_TIERS
        self._tiers.add(name)
        return name

    def _moved(self, key: JobKey, before: JobState, move: Move) -> None:
        if move.source in READY and move.target not in READY:
            self._unready[key] = self._clock.now()
        if move.target in READY or move.target in (Stage.SUSPENDED, *TERMINAL):
            since = self._unready.pop(key, None)
            if since is not None and move.reason is Reason.ALL_READY:
                self.fallback_seconds.observe(max(0.0, self._clock.now() - since))
        if move.reason is Reason.FELL_BACK:
            why = before.record(before.tier).exhausted_by or before.reason
            self.fallbacks.labels(self._tier(before.tier), self._tier(move.tier), why).inc()

    def _paid(self, namespace: str, spec: JobSpec, before: JobState, after: JobState) -> None:
        for record in after.tiers:
            known = before.record(record.name)
            tier = spec.tier(record.name)
            if (paid := record.cost - known.cost) > 0:
                self.namespace_cost.labels(namespace).inc(paid)
                if tier is not None:
                    self.cost.labels(tier.capacity_type).inc(paid)
            if (saved := record.on_demand_cost - record.cost - (known.on_demand_cost - known.cost)) > 0:
                self.saved.inc(saved)
        for entry in fields(ExtraCosts):
            if (paid := getattr(after.extra, entry.name) - getattr(before.extra, entry.name)) > 0:
                self.namespace_cost.labels(namespace).inc(paid)
                self.extra_cost.labels(entry.name).inc(paid)

    def collect(self) -> Iterator[Metric]:
        """The gauges, created at each scrape."""
        jobs = list(self._jobs.items())
        for name, field, text in _JOB_GAUGES:
            gauge = _of_jobs(name, text)
            for key, job in jobs:
                if (value := getattr(job, field)) is not None:
                    gauge.add_metric(key, value)
            yield gauge
        phases = _of_jobs("spotladder_job_phase", "1 for the phase a job is in.", "phase")
        degraded = _of_jobs("spotladder_job_degraded", "1 for each reason why a job is degraded.", "reason")
        ages = _of_jobs(
            "spotladder_commit_age_seconds",
            "Seconds since the newest commit or, without one, since all workers were first ready.",
        )
        for key, job in jobs:
            phases.add_metric([*key, job.phase], 1)
            for reason in sorted(job.problems):
                degraded.add_metric([*key, reason], 1)
            if job.uncommitted_since is not None and job.phase in (Phase.RUNNING, Phase.DRAINING, Phase.PENDING):
                ages.add_metric(key, max(0.0, self._clock.now() - job.uncommitted_since))
        bad = GaugeMetricFamily(
            "spotladder_bad_nodes", "Jobs that avoid the node because their pods fail there.", labels=["node"]
        )
        for node, count in sorted(Counts(node for _, job in jobs for node in job.bad_nodes).items()):
            bad.add_metric([node], count)
        available = GaugeMetricFamily(
            "spotladder_tier_available",
            "1 if the tier of a job that has not ended had capacity for the newest request, else 0.",
            labels=["tier"],
        )
        used = {OTHER_TIERS}.union(*(job.tiers for _, job in jobs))
        for tier, had in list(self._available.items()):
            if tier in used:
                available.add_metric([tier], int(had))
        yield from (phases, ages, degraded, bad, available)


def _of_jobs(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=["namespace", "job", *labels])


def _leaving(before: JobState, after: JobState) -> int:
    """The number of pods whose replacement inside the live attempt begins."""
    if before.attempt is None or after.attempt is None or before.attempt.number != after.attempt.number:
        return 0
    return len(set(after.attempt.notice.leaving) - set(before.attempt.notice.leaving))


def _uncommitted_since(state: JobState) -> Instant | None:
    if state.progress.committed_at is not None:
        return state.progress.committed_at
    live = [state.attempt.running_at] if state.attempt else []
    running = [*(attempt.running_at for attempt in state.history), *live]
    return min((at for at in running if at is not None), default=None)
