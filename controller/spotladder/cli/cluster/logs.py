"""`spotladder logs`: prints the output of a job's program, attempt by attempt."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from spotladder.cli.cluster.connected_cluster import on_cluster
from spotladder.cli.local.logs import print_logs
from spotladder.cli.local.selection import StateDirOption, run_of
from spotladder.cli.options import ContextForOption, JobArgument, contexts_given
from spotladder.cli.target import ClusterTarget
from spotladder.errors import Refused
from spotladder.jobs.attempt_clusters import AttemptClusters
from spotladder.jobs.connected_cluster import ConnectedCluster
from spotladder.jobs.printing import Printer, Printing
from spotladder.places.attempt_output import newest_attempt


def logs(
    name: JobArgument,
    *,
    attempt: Annotated[int | None, typer.Option(min=1, help="Only this attempt. Default: all, in order.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Follow the output until the job ends.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, help="Number of last lines of each log.")] = None,
    every_pod: Annotated[
        bool, typer.Option("--all-pods", help="Print the logs of all pods, each line with the pod's name.")
    ] = False,
    state_dir: StateDirOption = None,
    context_for: ContextForOption = None,
    target: ClusterTarget,
) -> None:
    """Print the output of a job's program: attempts in order, each after a title line on stderr.

    A job of this machine (spotladder run) takes precedence over a job of a cluster. --context or --kubeconfig selects
    the cluster.

    Kubernetes keeps the logs of existing pods. For other attempts, the controller stores the last lines beside the
    checkpoints; the command prints them if this machine can read the job's bucket (credentials as for
    `spotladder checkpoints`). For attempts in other clusters, it uses the context of --context-for, or the context
    with the cluster's name.

    \b
    Examples:
      spotladder logs digits
      spotladder logs digits --attempt 2 --all-pods
      spotladder logs digits --attempt 1 --tail 50
      spotladder logs digits --follow > digits.log
      spotladder logs digits --context-for east=prod-us-east-1
    """
    contexts = contexts_given(context_for)
    if local_run := run_of(name, target, state_dir):
        if every_pod:
            raise Refused("a run on this machine has no pods: remove --all-pods")
        return print_logs(local_run, attempt, follow=follow, tail=tail)

    async def run(cluster: ConnectedCluster) -> None:
        job = await cluster.job(name)
        last = newest_attempt(job)
        if attempt is not None and attempt > last and not follow:
            raise Refused(f"tieredjob {name} has no attempt {attempt}: its newest attempt is {last}")
        async with AttemptClusters(cluster, target.kubeconfig, contexts) as clusters:
            printing = Printing(cluster, clusters, name, tail, on_terminal(), follow=follow, every_pod=every_pod)
            await printing.attempts(attempt)

    return on_cluster(target, run)


def on_terminal() -> Printer:
    """Lines go to stdout, and remarks to stderr."""

    async def flush() -> None:
        sys.stdout.flush()

    return Printer(sys.stdout.write, lambda text: typer.echo(text, err=True), flush)
