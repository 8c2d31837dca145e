"""`spotladder report`: shows the attempts, tiers, time and cost of a job in a cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spotladder.cli.cluster.connected_cluster import ConnectedCluster, Object, on_cluster
from spotladder.cli.cluster.snapshot import JobSnapshot, snapshot_of
from spotladder.cli.folders import folder
from spotladder.cli.local.report import print_report_of
from spotladder.cli.local.selection import StateDirOption, run_of
from spotladder.cli.options import JobArgument
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.target import ClusterTarget
from spotladder.display import job_text

if TYPE_CHECKING:
    from spotladder.core.model import Instant, JobState
    from spotladder.display.records import Recorded

ATTEMPTS = ("#", "Tier", "Cluster", "Waited", "Ran", "Steps", "Failures", "Ended by")
TIERS = ("Tier", "Attempts", "Failures", "Node hours", "Cost", "Left for")


def report(
    name: JobArgument,
    *,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            parser=folder,
            help="Also write report.html and report.json to this folder.",
        ),
    ] = None,
    output: OutputOption = Format.TABLE,
    state_dir: StateDirOption = None,
    target: ClusterTarget,
) -> None:
    """Show the attempts, tiers, steps, time and cost of a job. The status has the newest 20 attempts.

    A job of this machine (spotladder run) takes precedence over a job of a cluster. --context or --kubeconfig selects
    the cluster.

    --to writes the report that `spotladder run` writes, also for a running job. It includes commits and the loss if
    this machine can read the job's bucket (credentials as for `spotladder checkpoints`).

    \b
    Examples:
      spotladder report digits
      spotladder report digits --to digits-report
      spotladder report digits --output json
    """

    if local_run := run_of(name, target, state_dir):
        return print_report_of(local_run, to, output)

    async def find(cluster: ConnectedCluster) -> tuple[Object, JobSnapshot | None]:
        job = await cluster.job(name)
        return job, await snapshot_of(cluster, job) if to else None

    job, known = on_cluster(target, find)
    recorded = None if known is None else _timeline(known, time.time())
    if output is not Format.TABLE:
        print_data(_plain(job), output)
    else:
        _print(job)
    if to and known and recorded:
        _write(to, recorded, known.state, err=output is not Format.TABLE)
    return None


def _print(job: Mapping[str, Any]) -> None:
    status = job.get("status") or {}
    ended = [_attempt(entry) for entry in sorted(status.get("attempts") or [], key=lambda entry: entry["number"])]
    if ended:
        print_table(ATTEMPTS, ended, "Ended attempts")
        typer.echo()
    if tiers := status.get("tiers"):
        print_table(TIERS, [_tier(entry) for entry in tiers], "Tiers")
        typer.echo()
    for label, text in _sentences(job):
        typer.echo(f"{label:<9}{text}")


def _timeline(known: JobSnapshot, now: Instant) -> Recorded:
    """The timeline of the job; a warning for each part that is missing."""
    recorded, missing = known.timeline(now)
    for what in missing:
        typer.echo(f"warning: {what}", err=True)
    return recorded


def _write(folder: Path, recorded: Recorded, state: JobState, *, err: bool) -> None:
    from spotladder.display.report import write_report

    write_report(folder, recorded, state)
    typer.echo(f"report: {folder / 'report.html'}", err=err)


def _attempt(entry: Mapping[str, Any]) -> tuple[str, ...]:
    from spotladder.display.figures import NONE, span

    started, running, ended = (_instant(entry.get(key)) for key in ("startedAt", "runningAt", "endedAt"))
    waited = span((running or ended or 0.0) - started) if started and (running or ended) else NONE
    return (
        str(entry["number"]),
        entry.get("tier", ""),
        entry.get("cluster", ""),
        waited,
        span(ended - running) if running and ended else NONE,
        f"{entry.get('startStep', 0)} → {entry.get('endStep', 0)}",
        str(entry.get("failures", 0)),
        entry.get("reason", ""),
    )


def _tier(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        entry["name"],
        str(entry.get("attempts", 0)),
        str(entry.get("failures", 0)),
        f"{entry.get('nodeSeconds', 0) / 3600:.2f}",
        _rounded(entry.get("cost") or "0"),
        "removed from the spec" if entry.get("removed") else entry.get("spent") or "",
    )


def _rounded(cost: str) -> str:
    """The cost rounded to cents."""
    sign, amount = (">", cost[1:]) if cost.startswith(">") else ("", cost)
    return f"{sign}${float(amount):.2f}" if amount.replace(".", "").isdigit() else cost


def _sentences(job: Mapping[str, Any]) -> list[tuple[str, str]]:
    status = job.get("status") or {}
    phase = status.get("phase") or "not reconciled by a controller yet"
    where = f", attempt {status['attempt']} on {status.get('tier')}" if status.get("attempt") else ""
    rows = [("job", f"{job['metadata']['namespace']}/{job['metadata']['name']}: {phase}{where}")]
    if status.get("message"):
        rows.append(("", status["message"]))
    progress = status.get("progress") or {}
    if progress.get("committedAt"):
        rows.append(("steps", f"{progress.get('text', '')}, newest commit {progress['committedAt']}"))
    else:
        rows.append(("steps", "nothing committed yet"))
    cost = status.get("cost") or {}
    if cost.get("spent"):
        unpriced = ", ".join(cost.get("unpriced") or ())
        rows.append(("paid", job_text.money(cost["spent"]) + (f" (unknown price: {unpriced})" if unpriced else "")))
    if parts := [f"{name} ${cost[name]}" for name in ("heads", "storage", "requests", "egress") if cost.get(name)]:
        rows.append(("", f"with {', '.join(parts)}"))
    if cost.get("savingsPercent"):
        percent = f"{cost['savingsPercent']} %".replace("-", "−")
        rows.append(("saved", f"{percent} of ${cost['uninterrupted']}, the same steps on demand without interruptions"))
    return rows


def _plain(job: Mapping[str, Any]) -> dict[str, Any]:
    status = job.get("status") or {}
    keys = ("phase", "message", "attempt", "tier", "failures", "progress", "cost", "tiers", "attempts")
    metadata = {key: job["metadata"][key] for key in ("namespace", "name")}
    return {**metadata, **{key: status[key] for key in keys if key in status}}


def _instant(text: str | None) -> float | None:
    from spotladder.timestamps import instant

    return instant(text)
