"""The options of `spotladder simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spotladder.planner.plan import MOST

MAX_SEEDS = 100_000

TraceOption = Annotated[
    list[str],
    typer.Option(
        metavar="[ZONE=]FILE",
        help="A zone's trace: a file, a folder of windows (one for each seed), the word synthetic, or "
        "synthetic:FILE for traces like that one. Repeat it for several zones. With --job, ZONE is the "
        "capacityTier that has this trace.",
    ),
]

CorrelationOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="How far synthetic zones lose capacity at the same time: 0, independently, to 1, together. Default: 0.",
    ),
]

DiurnalOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Daily change in the losses of synthetic zones: with 0.5, half as many again 6 h after the start, and "
        "half as many 18 h after it. Default: 0.",
    ),
]

PolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A policy to compare, or oracle: the cheapest run with knowledge of the traces. Repeat it. "
        "Default: ordered.",
    ),
]

HoursOption = Annotated[float, typer.Option(min=0.001, max=MOST, help="Hours of training without interruptions.")]

DeadlineOption = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="Time from the start of the job to its deadline, for example 70h."),
]

StartOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="With --job: when the job is submitted, if it has spec.deadline, for example 2026-12-01T00:00:00Z. "
        "Default: now.",
    ),
]

JobOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A job file: its tiers, limits, timeouts and workers are used.")
]

WorldOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="With --job: a world file with its capacityTiers: prices and unavailable periods."
    ),
]

WorkersOption = Annotated[
    int | None, typer.Option(min=1, max=10_000, help="Nodes of the gang, without --job. Default: 1.")
]

JobsOption = Annotated[
    int,
    typer.Option(min=1, max=1000, help="Equal jobs that share the capacity of the zones. Not with --quota."),
]

JobIntervalOption = Annotated[
    str, typer.Option(metavar="DURATION", help="With --jobs: time from the start of one job to that of the next.")
]

SeedsOption = Annotated[
    int, typer.Option(min=1, max=MAX_SEEDS, help="Runs of each policy, each from another start of the trace.")
]

ProcessesOption = Annotated[int, typer.Option(min=1, max=1024, help="Processes that share the runs.")]

RayOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Spread the runs over the Ray cluster with this address: auto, ray://HOST:10001, or local for all "
        "processors of this machine.",
    ),
]

SpotPriceOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=MOST,
        help="USD per node-hour of zones whose traces have no prices. Default: 1, if no zone has prices.",
    ),
]

OnDemandPriceOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=MOST,
        help="USD per node-hour on demand, of zones whose traces have no on-demand price. Default: 3, if no zone "
        "has one.",
    ),
]

RestartOption = Annotated[
    str, typer.Option(metavar="DURATION", help="Time from ready workers to the first step, at each start.")
]

CommitIntervalOption = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Training time between commits. Default: the job's, or 5m.")
]

CommitTimeOption = Annotated[
    str, typer.Option(metavar="DURATION", help="How long a commit takes; training continues meanwhile.")
]

ProvisionDelayOption = Annotated[str, typer.Option(metavar="DURATION", help="How long a node takes to join.")]

BootOption = Annotated[str, typer.Option(metavar="DURATION", help="How long a pod on a new node takes to be ready.")]

NoticeOption = Annotated[
    str, typer.Option(metavar="DURATION", help="Time between the notice of a spot node and its reclaim.")
]

EgressOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="CSV: from_region,to_region,price_usd_per_gb. The prices are per GiB."),
]

CheckpointGibOption = Annotated[float, typer.Option(min=0, max=MOST, help="Size of a commit in GiB, for --egress.")]

QuotaOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ZONE=FILE",
        help="The nodes that the zone's admission queue (Kueue) allows the job over time: a trace in the format "
        "time,nodes. Repeat it for several zones.",
    ),
]

AtomicOption = Annotated[
    bool, typer.Option("--atomic", help="A gang gets all of its nodes at once or none: it never holds a part of them.")
]

SurgeOption = Annotated[
    bool,
    typer.Option(
        "--surge",
        help="The program can continue without workers whose nodes will be reclaimed (train.ray_run_config), so "
        "that they are replaced inside the attempt. With --job, on tiers that do not set surge: false.",
    ),
]

ProbedOption = Annotated[
    bool, typer.Option("--probed", help="Policies always know which zones have capacity, without an attempt there.")
]

PolarityOption = Annotated[
    str | None,
    typer.Option(metavar="available|preempted", help="Meaning of a 1 in a trace, instead of that of its format."),
]

SortOption = Annotated[bool, typer.Option("--sort", help="Lines of node counts may be in any order.")]

PlotOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw costs and finish times into a .png or .svg file.")
]

SurvivalOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw how long periods of capacity last, in the traces and in synthetic traces fitted to them.",
    ),
]

ReportOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the comparison as one HTML file.")]
