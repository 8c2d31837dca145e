"""`spotladder run`: runs a job on this machine, on simulated spot nodes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spotladder.api.deadline import check_deadline
from spotladder.cli import terminal
from spotladder.cli.folders import check_writable, folder
from spotladder.cli.local.run_input import RunArguments
from spotladder.cli.notify import given_up, receivers
from spotladder.cli.report_table import planned, print_report
from spotladder.core.contract import ExitCode
from spotladder.core.model import TERMINAL
from spotladder.display.report import gather, write_report
from spotladder.display.view import PlainView, Shielded, View, view_on
from spotladder.errors import EnvironmentFailure, SpotladderError
from spotladder.extras import needs
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
    words: Annotated[
        list[str],
        typer.Argument(metavar="JOB.yaml | -- COMMAND…", help="The TieredJob to run, or a command without a job file."),
    ],
    *,
    world: Annotated[
        Path | None,
        typer.Option(metavar="WORLD.yaml", help="The simulated pools. Default: each tier has enough nodes."),
    ] = None,
    evict: Annotated[
        list[str] | None,
        typer.Option(
            "--evict",
            metavar="TIME",
            help="Take the node of a command away at this time or step (60s, 20steps), with a notice. Repeatable.",
        ),
    ] = None,
    program_folder: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder in which a command without spotladder.train saves its checkpoints."),
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
      spotladder run --evict 60s -- python train.py --epochs 3
      spotladder run --evict 20steps --program-folder out -- python train.py
    """
    if fresh and continue_:
        raise typer.BadParameter("--fresh and --continue exclude each other")
    console = terminal.console()
    targets = receivers(notify, None) if notify else []
    given = RunArguments(words=words, world=world, folder=program_folder, evictions=evict or ())
    given.check()
    root = state_dir.resolve() if state_dir else state_root(os.environ)
    with given.errors_located():
        read, pools = given.read(root)
        request = Request(
            job=read,
            world=pools,
            file=given.job_file,
            world_file=world or given.job_file,
            state_root=root,
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
            _report(outcome, report)
    if outcome.message:
        typer.echo(outcome.message)
    if outcome.exit_code in (ExitCode.INTERRUPTED, EnvironmentFailure.exit_code):
        verb = "to retry" if outcome.state.stage in TERMINAL else "to continue"
        typer.echo(f"{verb}: {given.to_continue(report, state_dir)}")
    raise typer.Exit(outcome.exit_code)


@contextmanager
def _beside(request: Request, targets: list[Target], *, web: bool) -> Iterator[None]:
    """Serve the page of the run and send notifications until the run ends, if the options request them."""
    with ExitStack() as stack:
        if web:
            with needs("local"):
                from spotladder.web.beside import serve_runs

            address = stack.enter_context(beside(partial(serve_runs, request.state_root)))
            about = request.job.metadata
            typer.echo(f"page: {address}/jobs/{THIS_MACHINE}/{about.namespace}/{about.name}")
        if targets:
            from spotladder.notify.beside import notify_of_runs

            stack.enter_context(beside(partial(notify_of_runs, request.state_root, targets, given_up)))
        yield


def _report(outcome: RunOutcome, folder: Path | None) -> None:
    place = own = outcome.folder / "report"
    facts = planned(gather(recorded_in(outcome.folder)))
    try:
        place = folder or own
        write_report(place, facts)
    except SpotladderError as error:  # the folder was writable when the run started
        if folder is None:
            raise
        typer.echo(f"warning: {error}", err=True)
        place = own
        write_report(place, facts)
    print_report(facts)
    typer.echo(f"report: {place / 'report.html'}")
