"""Whether a command means a run on this machine or a job of a cluster.

A job that was run here is meant unless --context or --kubeconfig is given; --state-dir means this machine.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spotladder.cli.cluster.cluster import Refused, Target

if TYPE_CHECKING:
    from spotladder.local.look import LocalRun

DEFAULT_NAMESPACE = "default"

StateDirOption = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        help="Where runs on this machine keep their state. Default: $SPOTLADDER_STATE, or ~/.local/state/spotladder.",
    ),
]


def state_folder(state_dir: Path | None) -> Path:
    """The folder of all runs' states."""
    from spotladder.local.state import state_root

    return state_dir.expanduser().resolve() if state_dir else state_root(os.environ)


def run_of(name: str, target: Target, state_dir: Path | None) -> LocalRun | None:
    """The run on this machine that is meant; None when a cluster is. Raises Refused."""
    if target.context is not None or target.kubeconfig is not None:
        if state_dir is not None:
            raise Refused("--state-dir means a run on this machine, --context and --kubeconfig a cluster: give one")
        return None
    from spotladder.local.look import local_run

    root = state_folder(state_dir)
    namespace = target.namespace or DEFAULT_NAMESPACE
    found = local_run(root, namespace, name)
    if found is None and state_dir is not None:
        listing = f"spotladder status --state-dir {state_dir}"
        raise Refused(f"{root}: there is no run of {namespace}/{name}: {listing} shows what is")
    return found


def say_where(run: LocalRun) -> None:
    """Say on stderr that this machine was meant."""
    typer.echo(f"{run.namespace}/{run.name} on this machine ({run.folder.path}); --context means a cluster", err=True)
