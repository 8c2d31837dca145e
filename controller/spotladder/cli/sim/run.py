"""`spotladder sim run`: policies compared on the same capacity, through the decision core that runs in production."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spotladder.api.read import errors_located, read_job
from spotladder.cli.folders import check_writable, to_folder
from spotladder.cli.forecast import forecast_data
from spotladder.cli.option_errors import seconds
from spotladder.cli.options import ContextOption, KubeconfigOption
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.plan_input import PlanArguments, assumed_program, read_plan_input
from spotladder.cli.plan_options import EvictionsOption, HoursOption, RestartOption, TraceOption, WorldOption
from spotladder.cli.policies import policies
from spotladder.cli.target import ClusterTarget
from spotladder.cli.terminal import progress
from spotladder.errors import Refused
from spotladder.extras import needs
from spotladder.records.recorded_jobs import MAX_JOBS

if TYPE_CHECKING:
    from spotladder.planner.comparison import PolicyRuns
    from spotladder.planner.recording import Recording
    from spotladder.sim.world.run import SimulationOutcome

MAX_SEEDS = 100_000


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of the job.")],
    *,
    hours: HoursOption,
    world: WorldOption = None,
    trace: TraceOption = None,
    evictions: EvictionsOption = None,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A policy to compare. Repeat it. Default: that of the job.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=MAX_SEEDS, help="Runs of each policy, each on the capacity of another seed.")
    ] = 1,
    restart: RestartOption = "3m",
    to: Annotated[
        Path | None,
        to_folder("Also record each run in this new folder, for spotladder web, report and sim replay."),
    ] = None,
    output: OutputOption = Format.TABLE,
    context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Compare policies on capacity traces, through the same decisions as in production. Nothing is started.

    The tiers, limits and timeouts are those of the job, their prices those of the world file or of the cluster's
    CapacityTiers. A spot tier without a trace loses nodes at its eviction rate.

    \b
    Examples:
      spotladder sim run job.yaml --world world.yaml --hours 5 --trace spot-a=us-west-2b.csv --seeds 20
      spotladder sim run job.yaml --hours 48 --trace spot-a=synthetic --policy ordered --policy adaptive -o json
      spotladder sim run job.yaml --hours 48 --evictions-per-node-hour 0.1 --to runs
    """
    with needs("sim"):
        from spotladder.planner import comparison
        from spotladder.planner.assumptions import assumed

    given = PlanArguments(file, hours, world, trace or (), evictions, seconds("--restart", restart))
    plan_input, known = read_plan_input(given, ClusterTarget(None, context, kubeconfig))
    assumptions = assumed_program(plan_input, known, given)
    names = list(policies(policy or [plan_input.policy]))
    recording = None if to is None else _recording(to, file, len(names) * seeds)
    with errors_located(file), progress(len(names) * seeds) as bar:
        found = comparison.compare(plan_input, assumptions, names, range(seeds), bar.update, recording=recording)
    sentences = assumed(assumptions, plan_input)
    if output is not Format.TABLE:
        return print_data({"seeds": seeds, "policies": list(map(_plain, found)), "assumptions": sentences}, output)
    print_table(comparison.COLUMNS, comparison.rows(found), comparison.title(plan_input, assumptions))
    for sentence in comparison.failures(found):
        typer.echo(sentence)
    for sentence in sentences:
        typer.echo(f"assumed: {sentence}")
    return None


def _recording(to: Path, file: Path, runs: int) -> Recording:
    """Records the runs in this folder. Raises Refused if there are too many for the page, or if the folder has files,
    and EnvironmentFailure if it cannot be written."""
    from spotladder.checkpoints.open_store import open_store
    from spotladder.planner.recording import Recording

    if runs > MAX_JOBS:
        raise Refused(f"--to: {runs:,} runs, at most {MAX_JOBS} are recorded: use fewer --seeds or policies")
    check_writable(to)
    if any(to.iterdir()):
        raise Refused(f"--to: {to} is not empty: name a new folder")
    job = read_job(file).metadata
    return Recording(open_store(to), job.name, job.namespace)


def _plain(one: PolicyRuns) -> dict[str, Any]:
    runs = [_plain_run(seed, outcome) for seed, outcome in enumerate(one.outcomes)]
    return {"policy": one.policy, **forecast_data(one.forecast), "runsBySeed": runs}


def _plain_run(seed: int, outcome: SimulationOutcome) -> dict[str, Any]:
    return {
        "seed": seed,
        "succeeded": outcome.succeeded,
        "reason": str(outcome.reason),
        "costUsd": round(outcome.cost, 4),
        "finishHours": round(outcome.finished / 3600, 4),
        "losses": outcome.evictions,
        "attempts": outcome.attempts,
        "recomputedHours": round(outcome.recomputed / 3600, 4),
        "nodeHours": {tier: round(hours, 4) for tier, hours in outcome.node_hours.items()},
    }
