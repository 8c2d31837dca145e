"""`spotladder convert`: makes TieredJobs of the manifests of other systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spotladder.cli import kubernetes_names
from spotladder.conversion.reading import read_sources
from spotladder.conversion.registry import convert as converted_from
from spotladder.conversion.source import Options
from spotladder.errors import EnvironmentFailure, InvalidSpec


def convert(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="YAML files with the job; - is stdin.")],
    *,
    tiers: Annotated[
        list[str] | None,
        typer.Option(
            "--tier",
            metavar="NAME",
            parser=kubernetes_names.tier,
            help="CapacityTier of the cluster; repeatable, in order of use. Default: spot and on-demand.",
        ),
    ] = None,
    checkpoints: Annotated[
        str, typer.Option("--checkpoints", metavar="URI", help="Bucket and prefix of the commits: s3://bucket/prefix.")
    ] = "",
    entrypoint: Annotated[
        str, typer.Option("--entrypoint", metavar="COMMAND", help="Command of the program, for a RayCluster.")
    ] = "",
    to: Annotated[Path | None, typer.Option("--to", metavar="FILE", help="Write the jobs into this file.")] = None,
) -> None:
    """Convert a job of another system into a TieredJob.

    Supported are RayJob, RayCluster with --entrypoint, JobSet, Job (batch/v1), TrainJob and PyTorchJob of Kubeflow,
    tasks of SkyPilot, and manifests of AIchor. Each field that is removed or changed becomes a comment with the reason.
    Other objects of the files, such as ConfigMaps, are named at the head of the result. The result passes
    `spotladder validate --for-cluster`.

    \b
    Examples:
      spotladder convert rayjob.yaml --tier a100-spot --tier a100 --checkpoints s3://my-bucket/llm --to job.yaml
      spotladder convert cluster.yaml --entrypoint 'python train.py'
    """
    from spotladder.conversion.render import text_of

    options = Options(tuple(tiers or ()), checkpoints, entrypoint)
    converted = converted_from(read_sources(files), options)
    text = text_of(converted.drafts, converted.others)
    if to is None:
        typer.echo(text, nl=False)
        return
    try:
        with to.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise InvalidSpec(f"{to} already exists: remove it, or name another file", path="--to") from None
    except OSError as error:
        raise EnvironmentFailure(
            f"--to: {to} cannot be written: {error.strerror or error}; name another file"
        ) from None
    names = ", ".join(str(draft.job["metadata"]["name"]) for draft in converted.drafts)
    removed = sum(draft.removed for draft in converted.drafts)
    typer.echo(f"{to}: {names}; {removed} fields were removed, see the comments", err=True)
