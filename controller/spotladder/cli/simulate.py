"""`spotladder simulate`: policies compared on capacity traces, through the decision core that runs in production."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.errors import EnvironmentFailure, InvalidSpec

if TYPE_CHECKING:
    from spotladder.sim.compare import Summary

MOST_SEEDS = 100_000


def simulate(
    *,
    trace: Annotated[
        list[str],
        typer.Option(
            metavar="[ZONE=]FILE",
            help="A zone's trace: a file, a folder of windows (one for each seed), the word synthetic, or "
            "synthetic:FILE for traces like that one. Repeat it for several zones. With --job, ZONE is the "
            "capacityTier that has this trace.",
        ),
    ],
    policy: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A policy to compare; repeat it. Default: ordered.")
    ] = None,
    hours: Annotated[float, typer.Option(help="Hours of training without interruptions.")],
    deadline: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Time from the start of the job to its deadline, for example 70h."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="With --job: when the job is submitted, if it has spec.deadline, for example 2026-12-01T00:00:00Z. "
            "Default: now.",
        ),
    ] = None,
    job: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A job file: its tiers, limits, timeouts and workers are used.")
    ] = None,
    world: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --job: a world file with the prices of its capacityTiers.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=10_000, help="Nodes of the gang, without --job.")] = 1,
    seeds: Annotated[
        int, typer.Option(min=1, max=MOST_SEEDS, help="Runs of each policy, each from another start of the trace.")
    ] = 1,
    processes: Annotated[int, typer.Option(min=1, max=1024, help="Processes that share the runs.")] = 1,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Spread the runs over the Ray cluster with this address: auto, ray://HOST:10001, or local for all "
            "processors of this machine.",
        ),
    ] = None,
    spot_price: Annotated[
        float, typer.Option(min=0, help="USD per node-hour of zones whose traces have no prices.")
    ] = 1.0,
    on_demand_price: Annotated[float, typer.Option(min=0, help="USD per node-hour on demand.")] = 3.0,
    restart: Annotated[
        str, typer.Option(metavar="DURATION", help="Time from ready workers to the first step, at each start.")
    ] = "3m",
    commit_interval: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Training time between commits. Default: the job's, or 5m.")
    ] = None,
    commit_time: Annotated[
        str, typer.Option(metavar="DURATION", help="How long a commit takes; training continues meanwhile.")
    ] = "10s",
    provision_delay: Annotated[str, typer.Option(metavar="DURATION", help="How long a node takes to join.")] = "2m",
    boot: Annotated[
        str, typer.Option(metavar="DURATION", help="How long a pod on a new node takes to be ready.")
    ] = "1m",
    notice: Annotated[
        str, typer.Option(metavar="DURATION", help="Time between the notice of a spot node and its reclaim.")
    ] = "0s",
    egress: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV: from_region,to_region,price_usd_per_gb.")
    ] = None,
    checkpoint_gib: Annotated[float, typer.Option(min=0, help="Size of a commit, for --egress.")] = 0.0,
    quota: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ZONE=FILE",
            help="The nodes that the zone's admission queue (Kueue) allows the job over time: a trace in the format "
            "time,nodes. Repeat it for several zones.",
        ),
    ] = None,
    atomic: Annotated[
        bool, typer.Option("--atomic", help="Nodes come all together or not at all; a partial gang is never held.")
    ] = False,
    surge: Annotated[
        bool,
        typer.Option(
            "--surge",
            help="The program can continue without workers whose nodes will be reclaimed (train.ray_run_config), so "
            "that they are replaced inside the attempt. With --job, on tiers that do not set surge: false.",
        ),
    ] = False,
    probed: Annotated[
        bool, typer.Option("--probed", help="Policies know at all times which zones have capacity, without asking.")
    ] = False,
    polarity: Annotated[
        str | None, typer.Option(metavar="available|preempted", help="Meaning of a 1, if the file does not define it.")
    ] = None,
    sort: Annotated[bool, typer.Option("--sort", help="Lines of node counts may be in any order.")] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw costs and finish times into a .png or .svg file.")
    ] = None,
    survival: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw how long periods of capacity last, in the traces and in synthetic traces fitted to them.",
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the comparison as one HTML file.")] = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Compare policies on capacity traces, through the same decisions as in production. Nothing is started.

    Without --job, the tiers are the zones of the traces, in their order, and then on-demand.

    \b
    Examples:
      spotladder simulate --trace us-west-2b.json --hours 48 --deadline 70h --seeds 20
      spotladder simulate --trace synthetic --hours 5 --deadline 12h --policy ordered --seeds 10 -o json
      spotladder simulate --job job.yaml --world world.yaml --trace g5-spot-use1a=zone.csv --hours 5
    """
    try:
        from spotladder.cli import simulation
        from spotladder.sim import table
        from spotladder.sim.compare import compare
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise EnvironmentFailure("simulate needs numpy: pip install 'spotladder[sim]'") from None

    options = simulation.SimulationOptions(
        hours=hours,
        deadline=deadline,
        start=simulation.instant(start, time.time()),
        workers=workers,
        spot_price=spot_price,
        on_demand_price=on_demand_price,
        restart=restart,
        commit_interval=commit_interval,
        commit_time=commit_time,
        provision_delay=provision_delay,
        boot=boot,
        notice=notice,
        egress=egress,
        checkpoint_gib=checkpoint_gib,
        atomic=atomic,
        surge=surge,
        probed=probed,
    )
    traces = simulation.read(trace, polarity, sort=sort)
    for path, given in (("--world", world), ("--start", start)):
        if given is not None and job is None:
            raise InvalidSpec("goes with --job", path=path)
    scenario = simulation.of_job(job, world, traces, options) if job else simulation.of_traces(traces, options)
    scenario = simulation.with_quotas(scenario, quota or [])
    simulation.check_plot(plot, "--plot")
    simulation.check_plot(survival, "--survival")
    policies = list(dict.fromkeys(policy or ["ordered"]))
    with simulation.bar(len(policies) * seeds) as done:
        summaries = compare(scenario, policies, seeds, done, processes, ray=ray)
    if plot is not None:
        from spotladder.sim.plots import draw

        draw(plot, summaries)
    if survival is not None:
        from spotladder.sim.plots import draw_survival

        draw_survival(survival, simulation.recorded(traces))
    if report is not None:
        from spotladder.sim.report import write

        write(report, summaries, scenario)
    if output is not Format.TABLE:
        print_data({"seeds": seeds, "policies": [_plain(summary) for summary in summaries]}, output)
        return
    print_table(table.COLUMNS, table.rows(summaries, scenario), table.title(scenario))
    for sentence in table.failures(summaries):
        typer.echo(sentence)
    for name, file in (("Plot", plot), ("Survival curves", survival), ("Report", report)):
        if file is not None:
            typer.echo(f"\n{name}: {file}")


def _plain(summary: Summary) -> dict[str, Any]:
    return {
        "policy": summary.policy,
        "succeeded": summary.succeeded,
        "costUsd": round(summary.cost, 4),
        "costUsdP50": round(summary.cost_at(50), 4),
        "costUsdP90": round(summary.cost_at(90), 4),
        "finishHours": None if summary.hours is None else round(summary.hours, 4),
        "evictions": round(summary.evictions, 4),
        "recomputedHours": round(summary.recomputed, 4),
        "overheadHours": round(summary.overhead, 4),
        "runs": [
            {
                "seed": seed,
                "succeeded": one.succeeded,
                "reason": str(one.reason),
                "costUsd": round(one.cost, 4),
                "egressUsd": round(one.egress, 4),
                "finishHours": round(one.finished / 3600, 4),
                "evictions": one.evictions,
                "attempts": one.attempts,
                "recomputedHours": round(one.recomputed / 3600, 4),
                "overheadHours": round(one.overhead / 3600, 4),
                "waitingUsd": round(one.waiting, 4),
                "nodeHours": {tier: round(hours, 4) for tier, hours in one.node_hours.items()},
            }
            for seed, one in enumerate(summary.outcomes)
        ],
    }
