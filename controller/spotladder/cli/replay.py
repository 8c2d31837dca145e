"""`spotladder sim replay`: runs a recorded job again with another policy."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spotladder.cli.cluster.capacity_tiers import capacity_in
from spotladder.cli.cluster.connected_cluster import ConnectedCluster, on_cluster
from spotladder.cli.cluster.snapshot import JobSnapshot, snapshot_of
from spotladder.cli.local.selection import StateDirOption, run_of
from spotladder.cli.options import ContextOption, KubeconfigOption, NamespaceOption
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.target import ClusterTarget, Refused
from spotladder.cli.written_files import check_file
from spotladder.errors import EnvironmentFailure, InvalidSpec, not_written

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spotladder.api.stored import CapacityRecord
    from spotladder.core.model import JobState, PricePoint
    from spotladder.display.records import Recorded
    from spotladder.planner.replay.history import RecordedRun
    from spotladder.sim.world.run import SimulationOutcome

DIFFERENT = 1
"""Exit code if a file of --to takes another path now."""

NOT_ENDED = "not ended"

COLUMNS = ("Policy", "Ends with", "Cost", "Ends after", "Losses", "Attempts")


@dataclass(frozen=True, slots=True)
class Replayed:
    """One replay: without (`low`) and with (`high`) the capacity that the recorded run did not observe."""

    policy: str
    low: SimulationOutcome
    high: SimulationOutcome


def replay(
    job: Annotated[
        str,
        typer.Argument(metavar="JOB|FILE", help="Name of the job, or a file of --to, which is run again and compared."),
    ],
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A policy to replay with; repeat it. Default: the job's policy and its shadow policy."
        ),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1_000_000,
            help="Hours of training without interruptions. Default: the number of steps times their measured duration.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FILE", help="Write the first replay to this JSON file as a test of later versions."
        ),
    ] = None,
    output: OutputOption = Format.TABLE,
    state_dir: StateDirOption = None,
    namespace: NamespaceOption = None,
    context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Show what a recorded job would have cost with another policy.

    The replay runs the job through the decisions of the controller, on the capacity that the recorded run observed.
    Where the run observed nothing, the result is a range: without and with capacity there. Nothing is started.

    A job of this machine (spotladder run) takes precedence over a job of a cluster. --context or --kubeconfig selects
    the cluster.

    \b
    Examples:
      spotladder sim replay digits --policy ordered --policy adaptive
      spotladder sim replay digits --to incident.json
      spotladder sim replay incident.json
    """
    try:
        from spotladder.cli.policies import policies
        from spotladder.planner.replay.history import history
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise EnvironmentFailure("sim replay needs numpy: pip install 'spotladder[sim]'") from None

    if job.endswith(".json"):
        recording = {"--policy": policy, "--hours": hours, "--to": to}
        place = {"--state-dir": state_dir, "-n": namespace, "--context": context, "--kubeconfig": kubeconfig}
        options = recording | place
        if given := [name for name, value in options.items() if value is not None]:
            raise Refused(f"{given[0]}: a file of --to is replayed as it was recorded: remove {' and '.join(given)}")
        return _check(Path(job), output)
    if to is not None and to.suffix != ".json":
        raise InvalidSpec(f"must be a file name that ends with .json, not {to.name!r}", path="--to")
    check_file("--to", to)
    recorded, state, prices = _recorded(job, ClusterTarget(namespace, context, kubeconfig), state_dir)
    found = history(recorded.records, state, hours, prices)
    names = policies(policy or found.policies)
    replays = _replays(found, names)
    if to is not None:
        _write(to, found, replays[0])
    if output is not Format.TABLE:
        return print_data(_plain(found, replays), output)
    _print(found, replays)
    for gap in recorded.gaps:
        typer.echo(f"record: {gap}")
    if to is not None:
        typer.echo(f"Replay: {to}")
    return None


Prices = dict[str, "tuple[PricePoint, ...]"]
"""The recorded prices of each tier, oldest first."""


def _recorded(name: str, target: ClusterTarget, state_dir: Path | None) -> tuple[Recorded, JobState, Prices]:
    """The record of the job, its state and the prices of its tiers, of this machine or of a cluster. The prices of the
    pools of this machine do not change."""
    from spotladder.cli import kubernetes_names

    try:
        name = kubernetes_names.job(name)
    except typer.BadParameter as error:
        raise Refused(f"JOB: {error.message}") from None
    if run := run_of(name, target, state_dir):
        return run.recorded(), run.state(), {}

    async def find(cluster: ConnectedCluster) -> tuple[JobSnapshot, Prices]:
        found = await snapshot_of(cluster, await cluster.job(name))
        return found, _prices(found, await capacity_in(cluster))

    snapshot, prices = on_cluster(target, find)
    recorded, missing = snapshot.timeline(time.time())
    for what in missing:
        typer.echo(f"warning: {what}", err=True)
    return recorded, snapshot.state, prices


def _prices(snapshot: JobSnapshot, capacity: Mapping[str, CapacityRecord]) -> Prices:
    """The prices in the status of the job's CapacityTiers that the user may read."""
    from spotladder.api.tier_history import history_in

    tiers = snapshot.job.tiers
    return {tier: history_in(capacity[named].status).prices for tier, named in tiers if named in capacity}


def _replays(found: RecordedRun, policies: Sequence[str]) -> list[Replayed]:
    from spotladder.sim.scenario import simulate

    return [Replayed(name, simulate(found.low, name, 0), simulate(found.high, name, 0)) for name in policies]


def _write(file: Path, found: RecordedRun, first: Replayed) -> None:
    from spotladder.atomic import write_text
    from spotladder.planner.replay.incident import written

    try:
        write_text(file, written(found.low, first.policy, first.low))
    except OSError as error:
        raise not_written("--to", file, error) from None


def _check(file: Path, output: Format) -> None:
    """Run the replay of a file again. Exits with DIFFERENT if its path has changed."""
    from spotladder.planner.replay.incident import differences, read

    incident = read(file)
    found, count = differences(incident), len(incident.path)
    if output is not Format.TABLE:
        data = {"file": str(file), "policy": incident.policy, "transitions": count, "differences": found}
        print_data(data, output)
    else:
        for sentence in found or [f"the same {count} transitions with policy {incident.policy}"]:
            typer.echo(f"{file}: {sentence}")
    if found:
        raise typer.Exit(DIFFERENT)


# --- output ----------------------------------------------------------------------------------------------------------


def _print(found: RecordedRun, replays: Sequence[Replayed]) -> None:
    from spotladder.display.figures import money, span

    was = found.result
    rows = [
        ("as recorded", was.ended_with, money(was.cost), span(was.hours * 3600), str(was.losses), str(was.attempts)),
        *(_row(one) for one in replays),
    ]
    print_table(COLUMNS, rows, found.job)
    typer.echo()
    for one in replays[1:]:
        typer.echo(f"compared: {one.policy} instead of {replays[0].policy}: {_saving(replays[0], one)}")
    for sentence in found.assumptions:
        typer.echo(f"assumed: {sentence}")


def _saving(first: Replayed, other: Replayed) -> str:
    """The difference in cost between the two replays, in words. The cost of one that does not end is not comparable."""
    from spotladder.display.figures import money

    if endless := [one.policy for one in (first, other) if NOT_ENDED in (_ending(one.low), _ending(one.high))]:
        return f"{' and '.join(endless)} may not end"

    def difference(usd: float) -> str:
        text = money(abs(usd))
        return "the same cost" if text == money(0.0) else f"{text} {'less' if usd > 0 else 'more'}"

    saved = first.low.cost - other.low.cost, first.high.cost - other.high.cost
    return " – ".join(dict.fromkeys(map(difference, saved)))


def _row(one: Replayed) -> tuple[str, ...]:
    from spotladder.display.figures import money, span

    def both(low: str, high: str) -> str:
        return low if low == high else f"{low} – {high}"

    low, high = one.low, one.high
    return (
        one.policy,
        both(_ending(low), _ending(high)),
        both(money(low.cost), money(high.cost)),
        both(span(low.finished), span(high.finished)),
        both(str(low.evictions), str(high.evictions)),
        both(str(low.attempts), str(high.attempts)),
    )


def _ending(one: SimulationOutcome) -> str:
    """The reason of the end; a policy that waits for capacity may not end at all."""
    from spotladder.core.model import TERMINAL

    ended = one.succeeded or (one.path and one.path[-1].move.target in TERMINAL)
    return str(one.reason) if ended else NOT_ENDED


def _plain(found: RecordedRun, replays: Sequence[Replayed]) -> dict[str, Any]:
    was = found.result
    return {
        "job": found.job,
        "recorded": {
            "reason": was.ended_with,
            "costUsd": round(was.cost, 6),
            "finishHours": round(was.hours, 6),
            "losses": was.losses,
            "attempts": was.attempts,
        },
        "replays": [
            {
                "policy": one.policy,
                "withoutUnobservedCapacity": _outcome(one.low),
                "withUnobservedCapacity": _outcome(one.high),
            }
            for one in replays
        ],
        "unobserved": list(found.uncertain),
        "assumptions": list(found.assumptions),
    }


def _outcome(one: SimulationOutcome) -> dict[str, Any]:
    return {
        "succeeded": one.succeeded,
        "reason": _ending(one),
        "costUsd": round(one.cost, 6),
        "finishHours": round(one.finished / 3600, 6),
        "losses": one.evictions,
        "attempts": one.attempts,
        "nodeHours": {tier: round(hours, 6) for tier, hours in one.node_hours.items()},
    }
