"""`spotladder status`: shows the state of jobs, on this machine or a cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spotladder.cli.cluster import kubernetes_names as kubernetes
from spotladder.cli.cluster.options import ContextOption, KubeconfigOption, NamespaceOption
from spotladder.cli.local.selection import StateDirOption, run_of, state_folder
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.target import ClusterTarget
from spotladder.timestamps import utc_timestamp

if TYPE_CHECKING:
    from spotladder.display.records import Waited
    from spotladder.local.local_run import LocalRun

COLUMNS = ("Namespace", "Name", "Phase", "Tier", "Attempt", "Failures", "Progress", "Cost", "Saved", "Age")


def status(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", parser=kubernetes.job, help="Name of the job. Default: all jobs.")
    ] = None,
    *,
    output: OutputOption = Format.TABLE,
    state_dir: StateDirOption = None,
    namespace: NamespaceOption = None,
    context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Show the phase, progress and cost of jobs.

    A job of this machine (spotladder run) takes precedence over a job of a cluster. --context or --kubeconfig selects
    the cluster. Without a name, the command lists all runs on this machine.

    \b
    Examples:
      spotladder status
      spotladder status digits
      spotladder status digits --context prod --output yaml
    """
    from spotladder.cli.cluster.get import get

    target = ClusterTarget(namespace, context, kubeconfig)
    if name is None and context is None and kubeconfig is None:
        from spotladder.local.local_run import local_runs

        runs = local_runs(state_folder(state_dir))
        _show([run for run in runs if namespace in (None, run.namespace)], output, state_folder(state_dir))
    elif name is not None and (run := run_of(name, target, state_dir)):
        _show_one(run, output)
    else:
        get([name] if name else None, output=output, namespace=namespace, context=context, kubeconfig=kubeconfig)


def _show(runs: list[LocalRun], output: Format, root: Path) -> None:
    if output is not Format.TABLE:
        print_data([_plain(run) for run in runs], output)
    elif runs:
        print_table(COLUMNS, [_row(run) for run in runs])
    else:
        typer.echo(f"No runs found on this machine ({root}); to list the jobs of a cluster: spotladder get", err=True)


def _show_one(run: LocalRun, output: Format) -> None:
    if output is not Format.TABLE:
        print_data(_plain(run), output)
        return
    print_table(COLUMNS, [_row(run)])
    state, process = run.state(), run.process
    typer.echo("")
    if state.message:
        typer.echo(f"why      {state.reason}: {state.message}")
    if waited := _waited(run):
        from spotladder.display.narrate import waiting_text

        typer.echo(f"waits    {waiting_text(waited, time.time())}")
    if state.standby is not None:
        typer.echo(f"standby  attempt {state.standby.number} on {state.standby.tier} ({state.standby_reason})")
    if state.left:
        from spotladder.display.narrate import removal_text

        typer.echo(f"ended    {removal_text(state.left, time.time())}")
    if state.shadow is not None and state.shadow.agreement is not None:
        from spotladder.core.shadowing import summary

        typer.echo(f"shadow   {summary(state.shadow)}")
    typer.echo(f"runner   {'none' if process is None else f'process {process}'}")
    typer.echo(f"folder   {run.folder.path}")


def _waited(run: LocalRun) -> Waited | None:
    """What the job waits for now; None if it does not wait, or no runner is active."""
    from spotladder.display.records import Began, Waited

    found = run.recorded().records if run.process is not None else ()
    newest = next((record for record in reversed(found) if isinstance(record, Began | Waited)), None)
    return newest if isinstance(newest, Waited) and newest.message else None


def _row(run: LocalRun) -> tuple[str, ...]:
    from spotladder.core.savings import savings
    from spotladder.display.figures import money, percent, span
    from spotladder.display.records import Began

    state = run.state()
    spec = next((record.spec for record in reversed(run.recorded().records) if isinstance(record, Began)), None)
    progress = state.progress
    since = run.folder.began()
    return (
        run.namespace,
        run.name,
        run.phase,
        state.tier,
        str(state.number or ""),
        str(state.failures),
        f"{progress.step}/{progress.total}" if progress.total else str(progress.step),
        money(state.spent_usd),
        percent(None if spec is None else savings(spec, state)).replace("\u202f", " "),
        "" if since is None else span(time.time() - since),
    )


def _plain(run: LocalRun) -> dict[str, Any]:
    from spotladder.display.shadow_figures import shadow_data

    state, process = run.state(), run.process
    standby = None if state.standby is None else {"attempt": state.standby.number, "tier": state.standby.tier}
    waited = _waited(run)
    return {
        "namespace": run.namespace,
        "name": run.name,
        "phase": run.phase,
        "reason": str(state.reason),
        "message": state.message,
        "process": process,
        "tier": state.tier,
        "attempt": state.number,
        "failures": state.failures,
        "progress": {"step": state.progress.step, "total": state.progress.total},
        "cost": {
            "spentUSD": round(state.spent_usd, 6),
            "onDemandUSD": round(state.on_demand_usd, 6),
            **({"overlapUSD": round(state.surplus_usd, 6)} if state.surplus_usd else {}),
        },
        **({"waiting": _waiting(waited)} if waited else {}),
        **({"standby": standby} if standby else {}),
        **({"removing": [{"attempt": left.number, "tier": left.tier} for left in state.left]} if state.left else {}),
        **({"shadow": shadow_data(state.shadow)} if state.shadow else {}),
        "folder": str(run.folder.path),
    }


def _waiting(waited: Waited) -> dict[str, str]:
    """The fields of `status.waiting` of a job of a cluster."""
    fields = {"message": waited.message, "since": utc_timestamp(waited.since)}
    if waited.until is None:
        return fields
    return {**fields, "timer": waited.timer, "until": utc_timestamp(waited.until), "then": waited.then}
