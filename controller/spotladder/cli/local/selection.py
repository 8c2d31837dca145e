"""Decides whether a command refers to a run on this machine or to a job in a cluster.

A run on this machine takes precedence unless --context or --kubeconfig is given. --state-dir selects this machine.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from spotladder.cli.target import ClusterTarget
from spotladder.errors import Refused
from spotladder.local.local_run import LocalRun, local_run
from spotladder.state_folder import state_root, with_home

DEFAULT_NAMESPACE = "default"

StateDirOption = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        help="State folder of runs on this machine. Default: $SPOTLADDER_STATE, or ~/.local/state/spotladder.",
    ),
]


def state_folder(state_dir: Path | None) -> Path:
    """The state folder of all runs."""
    return with_home(state_dir).resolve() if state_dir else state_root(os.environ)


def is_local(target: ClusterTarget, state_dir: Path | None) -> bool:
    """Whether a command can only mean this machine: --state-dir selects it, or no cluster is configured. Raises
    Refused if both a cluster and --state-dir are named."""
    if target.is_explicit:
        if state_dir is not None:
            raise Refused(
                "--state-dir selects a run on this machine, but --context and --kubeconfig select a cluster: remove "
                "one of them"
            )
        return False
    from spotladder.clusters.connection import configured

    return state_dir is not None or not configured()


def run_of(name: str, target: ClusterTarget, state_dir: Path | None) -> LocalRun | None:
    """The run on this machine with that name; None if the command refers to a cluster. Raises Refused."""
    local = is_local(target, state_dir)
    if target.is_explicit:
        return None
    root = state_folder(state_dir)
    namespace = target.namespace or DEFAULT_NAMESPACE
    found = local_run(root, namespace, name)
    if found is None and state_dir is not None:
        raise Refused(
            f"{root}: no run of {namespace}/{name} found: spotladder get --state-dir {state_dir} lists all runs"
        )
    if found is None and local:
        raise Refused(
            f"{root}: no run of {namespace}/{name} found, and no cluster is configured: spotladder get lists all runs; "
            "--kubeconfig or KUBECONFIG selects a cluster"
        )
    return found


def refuse_run(command: str, name: str, target: ClusterTarget, instead: str) -> None:
    """Raise Refused if no cluster is configured and the job is a run on this machine, to which a command for clusters
    does not apply. `instead` names the command to use."""
    if not is_local(target, None):
        return
    namespace = target.namespace or DEFAULT_NAMESPACE
    if local_run(state_folder(None), namespace, name) is not None:
        raise Refused(
            f"{namespace}/{name}: is a run on this machine, and spotladder {command} is for clusters: {instead}; "
            "--kubeconfig or KUBECONFIG selects a cluster"
        )


def print_place(run: LocalRun) -> None:
    """Print on stderr that the command refers to this machine."""
    typer.echo(
        f"{run.namespace}/{run.name} on this machine ({run.folder.path}); use --context for a job in a cluster",
        err=True,
    )
