"""`spotladder simulate`: policies compared on capacity traces, through the decision core that runs in production."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.simulate_options import (
    AtomicOption,
    BootOption,
    CheckpointGibOption,
    CommitIntervalOption,
    CommitTimeOption,
    CorrelationOption,
    DeadlineOption,
    DiurnalOption,
    EgressOption,
    HoursOption,
    JobIntervalOption,
    JobOption,
    JobsOption,
    NoticeOption,
    OnDemandPriceOption,
    PlotOption,
    PolarityOption,
    PolicyOption,
    ProbedOption,
    ProcessesOption,
    ProvisionDelayOption,
    QuotaOption,
    RayOption,
    ReportOption,
    RestartOption,
    SeedsOption,
    SortOption,
    SpotPriceOption,
    StartOption,
    SurgeOption,
    SurvivalOption,
    TraceOption,
    WorkersOption,
    WorldOption,
)
from spotladder.cli.written_files import check_file, check_picture
from spotladder.errors import EnvironmentFailure, InvalidSpec

if TYPE_CHECKING:
    from spotladder.sim.compare import Scenario, Summary


def simulate(
    *,
    trace: TraceOption,
    correlation: CorrelationOption = None,
    diurnal: DiurnalOption = None,
    policy: PolicyOption = None,
    hours: HoursOption,
    deadline: DeadlineOption = None,
    start: StartOption = None,
    job: JobOption = None,
    world: WorldOption = None,
    workers: WorkersOption = None,
    jobs: JobsOption = 1,
    job_interval: JobIntervalOption = "0s",
    seeds: SeedsOption = 1,
    processes: ProcessesOption = 1,
    ray: RayOption = None,
    spot_price: SpotPriceOption = None,
    on_demand_price: OnDemandPriceOption = None,
    restart: RestartOption = "3m",
    commit_interval: CommitIntervalOption = None,
    commit_time: CommitTimeOption = "10s",
    provision_delay: ProvisionDelayOption = "2m",
    boot: BootOption = "1m",
    notice: NoticeOption = "0s",
    egress: EgressOption = None,
    checkpoint_gib: CheckpointGibOption = 0.0,
    quota: QuotaOption = None,
    atomic: AtomicOption = False,
    surge: SurgeOption = False,
    probed: ProbedOption = False,
    polarity: PolarityOption = None,
    sort: SortOption = False,
    plot: PlotOption = None,
    survival: SurvivalOption = None,
    report: ReportOption = None,
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
        from spotladder.sim.zone_prices import KnownPrices
        from spotladder.sim.zone_traces import SyntheticSettings
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise EnvironmentFailure("simulate needs numpy: pip install 'spotladder[sim]'") from None

    _check_together(
        ("--world", world, "--job", job),
        ("--start", start, "--job", job),
        ("--checkpoint-gib", checkpoint_gib, "--egress", egress),
        ("--egress", egress, "--checkpoint-gib", checkpoint_gib),
    )
    if workers is not None and job is not None:
        raise InvalidSpec("cannot be used with --job, which has workers: remove one of the two", path="--workers")
    if processes > 1 and ray is not None:
        raise InvalidSpec(
            "cannot be used with --ray, which uses its processors: remove one of the two", path="--processes"
        )
    check_picture("--plot", plot)
    check_picture("--survival", survival)
    check_file("--report", report)
    options = simulation.SimulationOptions(
        hours=hours,
        deadline=deadline,
        start=simulation.instant(start, time.time()),
        workers=workers or 1,
        prices=KnownPrices(spot_price, on_demand_price),
        synthetic=SyntheticSettings(correlation, diurnal),
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
    compared = None if survival is None else simulation.recorded(traces)
    scenario = simulation.of_job(job, world, traces, options) if job else simulation.of_traces(traces, options)
    scenario = simulation.with_jobs(simulation.with_quotas(scenario, quota or []), jobs, job_interval)
    policies = simulation.policies(policy or ["ordered"])
    with simulation.bar(len(policies) * seeds) as done:
        summaries = compare(scenario, policies, seeds, lambda: done(1), processes, ray=ray)
    if survival is not None and compared is not None:
        from spotladder.sim.plots import draw_survival

        draw_survival(survival, compared, scenario.spec.workers)
    _write(plot, report, summaries, scenario)
    if output is not Format.TABLE:
        data = {"seeds": seeds, "policies": [_plain(summary, jobs) for summary in summaries]}
        print_data({**data, "assumptions": list(scenario.assumptions)}, output)
        return
    print_table(table.COLUMNS, table.rows(summaries, scenario), table.title(scenario))
    for sentence in table.failures(summaries):
        typer.echo(sentence)
    for sentence in scenario.assumptions:
        typer.echo(f"assumed: {sentence}")
    if lines := table.job_rows(summaries, scenario):
        typer.echo()
        print_table(table.JOB_COLUMNS, lines, table.JOB_TITLE)
    for name, file in (("Plot", plot), ("Survival curves", survival), ("Report", report)):
        if file is not None:
            typer.echo(f"\n{name}: {file}")


def _check_together(*options: tuple[str, object, str, object]) -> None:
    """Raises InvalidSpec for an option that is given without the other one, which it needs: each is a name and a
    value."""
    for option, given, other, needed in options:
        if given and not needed:
            raise InvalidSpec(f"goes with {other}", path=option)


def _write(plot: Path | None, report: Path | None, summaries: list[Summary], scenario: Scenario) -> None:
    """Write the files of --plot and --report."""
    if plot is not None:
        from spotladder.sim.plots import draw

        draw(plot, summaries, scenario.jobs)
    if report is not None:
        from spotladder.sim.report import write

        write(report, summaries, scenario)


def _plain(summary: Summary, jobs: int) -> dict[str, Any]:
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
                "seed": index // jobs,
                "job": index % jobs,
                "beginsAfterHours": round(one.began / 3600, 4),
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
            for index, one in enumerate(summary.outcomes)
        ],
    }
