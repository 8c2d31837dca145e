"""`spotladder run`: runs a job on this machine, on simulated spot nodes."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spotladder.api.deadline import check_deadline
from spotladder.api.local_mode import local_program
from spotladder.api.read import errors_located, read_job, read_job_and_world
from spotladder.api.tieredjob import TieredJob
from spotladder.api.world import World
from spotladder.cli import terminal
from spotladder.cli.folders import check_writable, folder
from spotladder.cli.invocation import command_words
from spotladder.cli.notify import given_up, receivers
from spotladder.core.contract import ExitCode
from spotladder.core.model import TERMINAL
from spotladder.display.report import write_report
from spotladder.display.report.table import print_report
from spotladder.display.view import PlainView, Shielded, View, view_on
from spotladder.errors import EnvironmentFailure, SpotladderError
from spotladder.local.local_run import recorded_in
from spotladder.local.output import WithOutput
from spotladder.local.previous_run import StartMode
from spotladder.local.run import Request, RunOutcome, run_locally
from spotladder.local.state import JobFolder
from spotladder.local.stopping import Stopping
from spotladder.places.beside import beside
from spotladder.places.this_machine import THIS_MACHINE
from spotladder.records.model import Record
from spotladder.state_folder import state_root

if TYPE_CHECKING:
    from spotladder.notify.targets import Target


def run(
    job: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The TieredJob to run.")],
    *,
    world: Annotated[
        Path | None,
        typer.Option(metavar="WORLD.yaml", help="The simulated pools. Default: each tier has enough nodes."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start from step 0: remove the previous run and its checkpoints.")
    ] = False,
    continue_: Annotated[
        bool, typer.Option("--continue", help="Continue the previous run from its newest commit.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", parser=folder, help="Folder of the report. Default: the run's state folder."),
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=folder,
            help="State folder of runs. Default: $SPOTLADDER_STATE, or ~/.local/state/spotladder.",
        ),
    ] = None,
    logs: Annotated[
        bool, typer.Option("--logs", help="Also print the program's output, as lines instead of the live view.")
    ] = False,
    web: Annotated[
        bool, typer.Option("--web", help="Serve a page of the run while it goes (afterwards: spotladder web).")
    ] = False,
    notify: Annotated[
        list[str] | None,
        typer.Option("--notify", metavar="URL", help="Tell this receiver what happens (see spotladder notify)."),
    ] = None,
) -> None:
    """Run a job on this machine, on Ray nodes that are taken away according to the world file.

    Ctrl-C drains the job and commits; a second Ctrl-C kills it. --continue resumes it after either, and after a crash
    or reboot.

    \b
    Exit codes: 0 succeeded, 1 failed, 2 invalid input, 3 all tiers exhausted, 4 deadline or budget,
    5 environment, 75 stopped, can be resumed, 76 another run owns the job.

    \b
    Examples:
      spotladder run job.yaml --world world.yaml
      spotladder run job.yaml --world world.yaml --continue
      spotladder run job.yaml --world world.yaml --fresh --logs
      spotladder run job.yaml --web
    """
    if fresh and continue_:
        raise typer.BadParameter("--fresh and --continue exclude each other")
    console = terminal.console()
    targets = receivers(notify, None) if notify else []
    with errors_located(job):
        if world:
            read, pools = read_job_and_world(job, world)
        else:
            read = read_job(job)
            pools = _default_world(read)
        request = Request(
            job=read,
            world=pools,
            file=job,
            world_file=world or job,
            state_root=state_dir.resolve() if state_dir else state_root(os.environ),
            mode=StartMode.FRESH if fresh else StartMode.RESUME if continue_ else StartMode.NEW,
        )
        if not continue_:
            check_deadline(read, time.time())
        if report:
            check_writable(report)
        folder = JobFolder(request.state_root, read.metadata.namespace, read.metadata.name).path / "attempts"

        def show(history: tuple[Record, ...]) -> View:
            if not logs:
                return view_on(console, history)
            return Shielded(WithOutput(PlainView(console, history), console, folder))

        with _beside(request, targets, web=web), Stopping() as stopping:
            outcome = run_locally(request, show, stopping)
            _report(outcome, report, console)
    if outcome.message:
        typer.echo(outcome.message)
    if outcome.exit_code in (ExitCode.INTERRUPTED, EnvironmentFailure.exit_code):
        verb = "to retry" if outcome.state.stage in TERMINAL else "to continue"
        typer.echo(f"{verb}: {_continue_command(job, world, report, state_dir)}")
    raise typer.Exit(outcome.exit_code)


@contextmanager
def _beside(request: Request, targets: list[Target], *, web: bool) -> Iterator[None]:
    """The page of the run and notifications while it goes, if they are wanted."""
    with ExitStack() as stack:
        if web:
            from spotladder.web.beside import serve_runs

            address = stack.enter_context(beside(partial(serve_runs, request.state_root)))
            about = request.job.metadata
            typer.echo(f"page: {address}/jobs/{THIS_MACHINE}/{about.namespace}/{about.name}")
        if targets:
            from spotladder.notify.beside import notify_of_runs

            stack.enter_context(beside(partial(notify_of_runs, request.state_root, targets, given_up)))
        yield


def _default_world(job: TieredJob) -> World:
    """The default world: every tier has as many nodes as the job has workers and never loses them."""
    nodes = max(1, local_program(job, job.spec.tiers[0].name).workers)
    return World.model_validate({"pools": {tier.capacity_tier: {"nodes": nodes} for tier in job.spec.tiers}})


def _report(outcome: RunOutcome, folder: Path | None, console: object) -> None:
    from rich.console import Console

    place = own = outcome.folder / "report"
    recorded = recorded_in(outcome.folder)
    try:
        place = folder or own
        facts = write_report(place, recorded)
    except SpotladderError as error:  # the folder was writable when the run started
        if folder is None:
            raise
        typer.echo(f"warning: {error}", err=True)
        place = own
        facts = write_report(place, recorded)
    if isinstance(console, Console):
        print_report(facts, console)
    typer.echo(f"report: {place / 'report.html'}")


def _continue_command(job: Path, world: Path | None, report: Path | None, state_dir: Path | None) -> str:
    words = [*command_words(), "run", str(job)]
    words += ["--world", str(world)] if world else []
    words += ["--report", str(report)] if report else []
    words += ["--state-dir", str(state_dir)] if state_dir else []
    return shlex.join([*words, "--continue"])
