"""The options of `spotladder plan`; `spotladder sim run` has some of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spotladder.core.accounting.cost import MAX_NUMBER

MAX_RUNS = 10_000

HoursOption = Annotated[
    float, typer.Option(min=0.001, max=MAX_NUMBER, help="Duration of the job on demand only, in hours (T).")
]

OverheadOption = Annotated[
    float | None,
    typer.Option(
        min=0, max=MAX_NUMBER, help="Cost of each failure in hours (Δt). Default: 3 minutes and half a commit interval."
    ),
]

EvictionsOption = Annotated[
    float | None,
    typer.Option(
        "--evictions-per-node-hour",
        min=0,
        max=MAX_NUMBER,
        help="Losses per spot node and hour. Default: the observed rate of each CapacityTier.",
    ),
]

WorldOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Use the pools of a world file instead of a cluster.")
]

TraceOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TIER=FILE",
        help="Simulate a spot tier with recorded capacity, from a random moment of it: a file, a folder of periods, "
        "or the word synthetic. Repeat it for several tiers.",
    ),
]

RunsOption = Annotated[int, typer.Option(min=1, max=MAX_RUNS, help="Simulated runs.")]

SeedOption = Annotated[int, typer.Option(min=0, help="Seed of the first run. The same seed gives the same answer.")]

RestartOption = Annotated[
    str, typer.Option(metavar="DURATION", help="Time from ready workers to the first step, at each start.")
]

CommitTimeOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Duration of a commit. Default: the longest that a run of the job measured, else 10s.",
    ),
]

CheckpointGibOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=MAX_NUMBER,
        help="Size of a commit, for the costs of storage and egress. Default: that of the newest commit of a "
        "run of the job.",
    ),
]

FormulaOption = Annotated[
    bool,
    typer.Option("--formula", help="Only the closed formulas: for the job, or without a job for the numbers below."),
]

SpotFractionOption = Annotated[
    float | None, typer.Option(help="Without a job: share of the work on spot before the fallback, 0 to 1 (α).")
]

MaxFailuresOption = Annotated[int | None, typer.Option(help="Without a job: number of failures tolerated on spot (M).")]

SpotDiscountOption = Annotated[
    float | None, typer.Option(help="Without a job: discount of spot compared with on demand, 0 to 1. Default: 0.9.")
]
