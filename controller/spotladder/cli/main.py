"""`spotladder`: selects the command, runs it, and converts errors into messages and an exit code.

A command's module is imported only when the command runs, which keeps `spotladder --help` fast.
Exit codes: 0 ok · 1 job failed · 2 usage or invalid spec · 3 tiers exhausted · 4 deadline or budget ·
5 environment · 75 interrupted, resumable · 76 fenced · 130 interrupted · 141 closed output pipe.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from spotladder.cli.invocation import program_name, refuse_without_command
from spotladder.cli.notation import in_kubectl_notation
from spotladder.cli.option_groups import with_option_groups
from spotladder.cli.terminal import cleaning
from spotladder.errors import SpotladderError

INTERRUPTED = 130
PIPE_CLOSED = 141


@dataclass(frozen=True, slots=True)
class _Entry:
    """The module of a command. `attribute` is a function, or a `typer.Typer` with subcommands. The help does not list a
    hidden command."""

    module: str
    attribute: str
    summary: str
    hidden: bool = False


GROUPS = {
    "Jobs": {
        "submit": _Entry("spotladder.cli.cluster.submit", "submit", "Create or update jobs in a cluster."),
        "get": _Entry("spotladder.cli.get", "get", "List the jobs of a cluster and of this machine, or show one."),
        "watch": _Entry("spotladder.cli.cluster.watch", "watch", "Follow a job in a cluster until it ends."),
        "logs": _Entry("spotladder.cli.cluster.logs", "logs", "Print the output of a job's program, by attempt."),
        "events": _Entry("spotladder.cli.cluster.events", "events", "Show the Events of a job, oldest first."),
        "report": _Entry("spotladder.cli.report", "report", "Show the attempts, tiers, time and cost of a job."),
        "web": _Entry("spotladder.cli.web", "web", "Serve a page with the jobs of this machine and of a cluster."),
        "notify": _Entry("spotladder.cli.notify", "notify", "Tell people and programs what happens to jobs."),
        "suspend": _Entry("spotladder.cli.cluster.suspension", "suspend", "Commit a job and release its nodes."),
        "resume": _Entry("spotladder.cli.cluster.suspension", "resume", "Continue a suspended job."),
        "delete": _Entry("spotladder.cli.cluster.delete", "delete", "Delete jobs; their checkpoints remain."),
        "checkpoints": _Entry("spotladder.cli.checkpoints", "app", "List, verify and delete the checkpoints of a job."),
        "validate": _Entry("spotladder.cli.validate", "validate", "Validate job, capacity and world files, offline."),
        "convert": _Entry(
            "spotladder.cli.convert", "convert", "Convert a RayJob, JobSet, PyTorchJob, … into a TieredJob."
        ),
    },
    "Local": {
        "demo": _Entry("spotladder.cli.demo", "demo", "Train a small model while its simulated spot nodes go away."),
        "init": _Entry("spotladder.cli.init", "init", "Write a job, a world and a test beside a training script."),
        "run": _Entry("spotladder.cli.run", "run", "Run a job on this machine, on simulated spot nodes."),
    },
    "Plan": {
        "plan": _Entry("spotladder.cli.plan", "plan", "Estimate the cost and the risks of a job on its tiers."),
        "sim": _Entry("spotladder.cli.sim.group", "app", "Compare policies on recorded capacity, offline."),
    },
    "Admin": {
        "infra": _Entry("spotladder.cli.infra", "app", "Manage clusters, pools and buckets from a fleet file."),
        "crds": _Entry("spotladder.cli.crds", "crds", "Print the CustomResourceDefinitions."),
        "schema": _Entry("spotladder.cli.schema", "schema", "Print the JSON schema of job files, for editors."),
        "controller": _Entry(
            "spotladder.cli.controller", "controller", "Run the controller of a Kubernetes cluster.", hidden=True
        ),
    },
}
"""The commands, in the groups and in the order of the help."""

COMMANDS = {name: entry for commands in GROUPS.values() for name, entry in commands.items()}


class _Root(TyperGroup):
    """The root command. It exits without a message when the output pipe is closed (`| head`)."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except (BrokenPipeError, SystemExit):  # Rich ends the process when the pipe is closed.
            _discard_output()
            raise typer.Exit(PIPE_CLOSED) from None
        return result

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 – the signature of the library
        """List the commands by group, with aligned summaries."""
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                shown = {name: entry for name, entry in commands.items() if not entry.hidden}
                formatter.write_dl([(name.ljust(width), entry.summary) for name, entry in shown.items()])


class _Deferred(TyperCommand):
    """A placeholder in the list of commands that loads the command on first use."""

    def __init__(self, name: str, entry: _Entry) -> None:
        super().__init__(name, short_help=entry.summary, hidden=entry.hidden, rich_markup_mode=None)
        self._entry = entry

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        command: Any = self.load()
        return command.make_context(info_name, args, parent, **extra)

    def load(self) -> Any:
        """The command itself. Imports its module."""
        target = getattr(import_module(self._entry.module), self._entry.attribute)
        if not isinstance(target, typer.Typer):
            app = typer.Typer(add_completion=False)
            app.command(self.name)(with_option_groups(target))
            target = app
        target.rich_markup_mode = None
        return in_kubectl_notation(get_command(target))


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"spotladder {version('spotladder')}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keep Ray training jobs alive on spot capacity.

    \b
    Examples:
      spotladder run job.yaml --world world.yaml
      spotladder submit job.yaml -n team-a --watch
      spotladder get digits
    """
    if not version:
        refuse_without_command(context)


def group() -> TyperGroup:
    """The root command with all subcommands, without importing their modules."""
    names = {"help_option_names": ["-h", "--help"]}
    app = typer.Typer(name="spotladder", cls=_Root, rich_markup_mode=None, context_settings=names)
    app.callback(invoke_without_command=True)(_root)
    root = get_command(app)
    if not isinstance(root, TyperGroup):  # pragma: no cover – an app with a callback is a group
        raise TypeError(root)
    for name, entry in COMMANDS.items():
        root.add_command(_Deferred(name, entry))
    return root


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns the exit code."""
    _tolerate_output_errors()
    with cleaning():
        return _run(arguments)


def _run(arguments: list[str] | None) -> int:
    try:
        outcome = group().main(args=arguments, prog_name=program_name(), standalone_mode=False)
    except SpotladderError as error:
        return _print_error(str(error).splitlines(), error.exit_code)
    except typer.TyperException as error:
        return _print_error([_usage_message(error)], error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except OSError as error:  # a full disk, a missing permission, too many open files: a problem of the machine
        _discard_output()
        about = f": {error.filename}" if error.filename else ""
        return _print_error([f"{error.strerror or error}{about}; correct this and run the command again"], 5)
    return outcome if isinstance(outcome, int) else 0


def _tolerate_output_errors() -> None:
    """Escape characters that the terminal cannot show, and ignore a closed one, instead of raising an error."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 – stays open until the process exits
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Redirect output to the null device if the buffer cannot be written, so that the interpreter's last flush
    succeeds."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage_message(error: typer.TyperException) -> str:
    message = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{message} (see: {context.command_path} --help)" if context else message


def _print_error(lines: list[str], exit_code: int) -> int:
    with suppress(BrokenPipeError):
        for line in lines:
            print(f"error: {line}", file=sys.stderr)  # noqa: T201 – the only place where the CLI prints errors
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
