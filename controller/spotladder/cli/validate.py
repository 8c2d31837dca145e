"""`spotladder validate`: validates files offline and reports errors with line numbers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.manifest import manifest
from spotladder.api.problems import InvalidDocument
from spotladder.api.review import Review, review
from spotladder.api.tieredjob import TieredJob
from spotladder.cli.options import NamespaceOption
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.display import job_text
from spotladder.jobs.job_namespace import namespace_problems
from spotladder.workloads.file_review import for_cluster, for_clusters_alone, of_programs, warnings


def validate(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="YAML files with TieredJobs, CapacityTiers or a world; - is stdin."),
    ],
    *,
    for_a_cluster: Annotated[
        bool, typer.Option("--for-cluster", help="Also run the checks that only a cluster needs.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Print the objects as `spotladder submit` sends them, instead of the result.")
    ] = False,
    namespace: NamespaceOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Validate job, capacity and world files, offline.

    Each problem is printed with file, line, column, field and remedy. The capacity of jobs is checked if the files
    include a CapacityTier or a world file. Exit code 2 if there is any problem.

    A file may be valid for `spotladder run` but not for a cluster, where pods need images and checkpoints need a
    bucket. --for-cluster also runs these checks, as `spotladder submit` does, without a connection to the cluster. Jobs
    with a JobSet run only on clusters and always get these checks.

    \b
    Examples:
      spotladder validate job.yaml
      spotladder validate job.yaml world.yaml --output json
      spotladder validate --show job.yaml | kubectl apply -f -
      spotladder validate --for-cluster job.yaml capacity.yaml -n team-a
    """
    found = review(files, now=time.time())
    found = found.with_problems(for_cluster(found) if for_a_cluster else for_clusters_alone(found))
    found = found.with_problems(namespace_problems(found, namespace))
    for warning in () if found.problems else warnings(found) if for_a_cluster else of_programs(found):
        typer.echo(f"warning: {warning}", err=True)
    if show and not found.problems:
        bodies = [manifest(entry.model) for entry in found.objects if isinstance(entry.model, TieredJob | CapacityTier)]
        shown = bodies[0] if len(bodies) == 1 else job_text.listed(bodies)
        print_data(shown, Format.JSON if output is Format.JSON else Format.YAML)
        raise typer.Exit
    if output is not Format.TABLE:
        print_data(_as_data(found), output)
        raise typer.Exit(2 if found.problems else 0)
    if found.objects:
        rows = [
            (entry.document.file, entry.kind, entry.name, "ok" if entry.valid else "invalid") for entry in found.objects
        ]
        print_table(("File", "Kind", "Name", "Result"), rows)
    if found.problems:
        raise InvalidDocument(found.problems)


def _as_data(found: Review) -> dict[str, object]:
    return {
        "valid": not found.problems,
        "objects": [
            {"file": entry.document.file, "kind": entry.kind, "name": entry.name, "valid": entry.valid}
            for entry in found.objects
        ],
        "problems": [
            {"where": problem.where, "path": problem.path, "message": problem.message} for problem in found.problems
        ],
    }
