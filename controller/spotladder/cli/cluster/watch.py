"""`spotladder watch`: shows a job in a cluster in the live view of `spotladder run`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from spotladder.api.status import TieredJobStatus
from spotladder.api.stored import CapacityRecord, JobRecord, state_of, status_of
from spotladder.api.yaml_text import as_yaml
from spotladder.cli.cluster.capacity_tiers import spec_in
from spotladder.cli.cluster.connected_cluster import on_cluster
from spotladder.cli.local.selection import refuse_run
from spotladder.cli.options import JobArgument
from spotladder.cli.output import Format, OutputOption
from spotladder.cli.target import ClusterTarget
from spotladder.cli.terminal import console
from spotladder.clusters.clock import SystemClock
from spotladder.core.accounting.held_nodes import account
from spotladder.core.facts.elastic import resized
from spotladder.core.model import TERMINAL, AttemptSeen, Instant, JobSpec, JobState, Observation, PodPhase, PodSeen
from spotladder.core.model.gang import launched_workers
from spotladder.display import job_text
from spotladder.display.unattended import AGE, unattended
from spotladder.display.view import View, view_on
from spotladder.display.view_state import ViewSnapshot
from spotladder.errors import EnvironmentFailure, InvalidSpec, Refused
from spotladder.jobs.connected_cluster import ConnectedCluster
from spotladder.jobs.waiting import OUTAGE_TIMEOUT, OutageTolerance
from spotladder.records.model import Began, Committed, Noted, Resized, Specified
from spotladder.resources import CAPACITYTIERS, EVENTS, TIEREDJOBS
from spotladder.workloads.records import EventRecord

if TYPE_CHECKING:
    from spotladder.clusters.cache import Cache

DRAW_INTERVAL = 1.0
"""Seconds between two updates of the view."""

SILENCE_TIMEOUT = 90.0
"""Seconds without data from the API server after which the view warns. A watch receives a bookmark every minute."""


def watch(
    name: JobArgument,
    *,
    output: OutputOption = Format.TABLE,
    target: ClusterTarget,
) -> None:
    """Follow a job until it ends. Ctrl-C ends the view, not the job.

    With --output json, each change prints the TieredJob as one line of JSON; with yaml, as a document.

    \b
    Exit codes: 0 succeeded, 1 failed, 2 job not found, 3 all tiers exhausted, 4 deadline or budget,
    5 environment.

    \b
    Examples:
      spotladder watch digits -n team-a
      spotladder watch digits -n team-a --output json
    """
    refuse_run("watch", name, target, f"spotladder logs {name} --follow follows its output")
    raise typer.Exit(
        follow_to_the_end(target, name) if output is Format.TABLE else _print_changes(target, name, output)
    )


def follow_to_the_end(target: ClusterTarget, name: str) -> int:
    """Show the job until it ends. Returns the exit code of its outcome."""

    async def follow(cluster: ConnectedCluster) -> Mapping[str, Any]:
        await cluster.job(name)  # fails at once if the job does not exist
        with view_on(console()) as view:
            await _JobObserver(cluster, name, view).run()
        return await cluster.job(name)

    job = on_cluster(target, follow)
    status = job.get("status") or {}
    why = status.get("message") or job_text.condition(job, "Completed").get("reason", "")
    typer.echo(": ".join(part for part in (f"tieredjob {name} is {status.get('phase')}", why) if part))
    return job_text.exit_code(job)


def _print_changes(target: ClusterTarget, name: str, output: Format) -> int:
    """Print the job after each change until it ends. Returns the exit code of its outcome."""

    async def follow(cluster: ConnectedCluster) -> Mapping[str, Any]:
        tolerance, printed, uid = OutageTolerance(OUTAGE_TIMEOUT), "", ""
        while True:
            with tolerance:
                job = job_text.cleaned(await cluster.job(name))
                if uid not in ("", job["metadata"]["uid"]):
                    raise Refused(f"tieredjob {name} was deleted")
                uid = job["metadata"]["uid"]
                if job["metadata"]["resourceVersion"] != printed:
                    printed = job["metadata"]["resourceVersion"]
                    typer.echo(json.dumps(job, ensure_ascii=False) if output is Format.JSON else f"---\n{as_yaml(job)}")
                if (job.get("status") or {}).get("phase") in job_text.ENDED:
                    return job
            await asyncio.sleep(DRAW_INTERVAL)

    return job_text.exit_code(on_cluster(target, follow))


class _JobObserver:
    """Feeds a view from the objects in the cluster."""

    def __init__(self, cluster: ConnectedCluster, name: str, view: View) -> None:
        from spotladder.clusters.cache import Cache

        self._cluster, self._name, self._view = cluster, name, view
        self._clock = SystemClock()
        client, about = cluster.client, f"involvedObject.kind=TieredJob,involvedObject.name={name}"
        self._jobs: Cache[JobRecord] = Cache(
            client, TIEREDJOBS, JobRecord.of, clock=self._clock, namespace=cluster.namespace,
            fields=f"metadata.name={name}",
        )  # fmt: skip
        self._events: Cache[EventRecord] = Cache(
            client, EVENTS, EventRecord.of, clock=self._clock, namespace=cluster.namespace, fields=about
        )
        self._capacity: Cache[CapacityRecord] = Cache(client, CAPACITYTIERS, CapacityRecord.of, clock=self._clock)
        self._reported: dict[str, float] = {}
        self._step = 0
        self._state = JobState()
        self._uid = ""
        self._generation = 0
        self._spec: JobSpec | None = None
        self._noted = ""

    async def run(self) -> None:
        """Return when the job has ended. Raises Refused if it is deleted, EnvironmentFailure if it cannot be listed."""
        caches: list[Cache[Any]] = [self._jobs, self._events, self._capacity]
        running = [asyncio.create_task(cache.run()) for cache in caches]
        try:
            await asyncio.gather(*(cache.wait_for_sync() for cache in caches))
            while True:
                job = self._jobs.get(self._name, self._cluster.namespace)
                if job is None and self._jobs.problem:
                    raise EnvironmentFailure(f"tieredjob {self._name} cannot be followed: {self._jobs.problem}")
                if job is None or self._uid not in ("", job.uid):
                    raise Refused(f"tieredjob {self._name} was deleted")
                self._uid = job.uid
                held = status_of(job)
                state = state_of(held)
                self._report(job, state, held)
                if state.stage in TERMINAL:
                    return
                await asyncio.sleep(DRAW_INTERVAL)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _report(self, job: JobRecord, state: JobState, held: TieredJobStatus) -> None:
        now = self._clock.now()
        if self._generation != job.generation:
            before, self._generation, self._spec = self._spec, job.generation, self._spec_of(job)
            if self._spec is not None and before is None:
                self._view.add(Began(job.created_at, job.name, job.namespace, self._spec))
            elif self._spec is not None:
                self._view.add(Specified(now, job.name, job.namespace, self._spec))
        for event in sorted(self._events.all(), key=lambda found: found.at or 0.0):
            at = event.at or now
            if event.about_uid in ("", job.uid) and self._reported.get(event.uid, 0.0) < at:
                self._reported[event.uid] = at
                self._view.add(Noted(at, f"{event.reason}: {event.message}", warning=not event.normal))
        progress = state.progress
        if progress.committed_at is not None and progress.step > self._step:
            self._step = progress.step
            self._view.add(
                Committed(progress.committed_at, progress.attempt, state.tier, progress.step, progress.total)
            )
        if (size := resized(self._state, state)) is not None:
            self._view.add(Resized(now, state.number, *size))
        self._state = state
        silent = self._clock.ticks() - self._jobs.heard_at
        warning_text = (
            f"the cluster does not answer: {self._jobs.problem or 'retrying'}" if silent > SILENCE_TIMEOUT else ""
        )
        warning_text = warning_text or unattended(state if held.phase else None, job.created_at, now)
        warning_text = warning_text or ("" if self._spec else held.message)
        noted = warning_text.partition(AGE)[0]
        if noted and noted != self._noted:
            self._view.add(Noted(now, noted))
        self._noted = noted
        if self._spec is not None:
            status = held.model_dump(mode="json", by_alias=True, include={"waiting", "conditions"})
            hint = warning_text or job_text.wrong(status, now) or "Ctrl-C ends the view, not the job"
            waits = job_text.waits(status["waiting"], now)
            self._view.update(replace(snapshot_of(self._spec, state, now, hint), waits=waits))

    def _spec_of(self, job: JobRecord) -> JobSpec | None:
        """The job as the core's JobSpec; None while it is invalid."""
        try:
            return spec_in(job, self._capacity.get)
        except InvalidSpec:
            return None


def snapshot_of(spec: JobSpec, state: JobState, now: Instant, hint: str) -> ViewSnapshot:
    """The status for the view. The cost is extrapolated to `now`, because the status is written every five minutes,
    unless the user may not read a price that the controller knows."""
    seen, later = Observation(state.revision, _attempts(state, spec), state.progress), account(state, spec, now)
    return ViewSnapshot(now, spec, later if later.unpriced == state.unpriced else state, seen, hint)


def _attempts(state: JobState, spec: JobSpec) -> tuple[AttemptSeen, ...]:
    """The current attempt with its running and pending workers according to the status."""
    attempt = state.attempt
    if attempt is None:
        return ()
    wanted = max(0, launched_workers(attempt, spec) - state.nodes) if attempt.ending.reason is None else 0
    phases = [PodPhase.RUNNING] * state.nodes + [PodPhase.PENDING] * wanted
    return (AttemptSeen(attempt.number, tuple(PodSeen(f"{n}", phase=phase) for n, phase in enumerate(phases))),)
