"""`spotladder infra kubeconfig|token`: gives kubectl access to the clusters on aws and gcp."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spotladder.cli.infra.options import FleetTarget
from spotladder.errors import InvalidSpec
from spotladder_infra.access import credential, merged
from spotladder_infra.access import target as kube_context
from spotladder_infra.topology.cluster import WITH_STACK


def kubeconfig(
    target: FleetTarget,
    *,
    to: Annotated[Path | None, typer.Option("--to", help="File to write; - is stdout. Default: below --state.")] = None,
) -> None:
    """Write a kubeconfig with a context for each cluster on aws and gcp, named as the cluster.

    It contains no credentials: kubectl calls `spotladder infra token`, which uses the credentials of your shell.
    Neither the aws nor the gcloud program is needed.

    \b
    Examples:
      export KUBECONFIG=$(spotladder infra kubeconfig)
      spotladder infra kubeconfig --cluster east --to -
    """
    import json

    found, clusters = target.read(warn=False)
    created = [entry for entry in clusters if entry.cloud in WITH_STACK]
    if not created:
        contexts = ", ".join(kube_context(found, entry, target.state).context for entry in clusters)
        raise InvalidSpec(f"your own kubeconfig has the contexts of these clusters ({contexts}): use it")
    text = json.dumps(merged(created), indent=1) + "\n"
    if to == Path("-"):
        typer.echo(text, nl=False)
        return
    path = (to or target.state / "kubeconfig.json").absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    typer.echo(path)


def token(
    cloud: Annotated[str, typer.Argument(metavar="CLOUD", help="aws or gcp.")],
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="The cluster's name.")],
    region: Annotated[str, typer.Argument(metavar="REGION", help="Its region.")],
) -> None:
    """Print a token for a cluster's API server, as kubectl expects it of a credentials program.

    The identity is that of your shell: boto3 and google-auth find it like the clouds' own programs.

    \b
    Example:
      spotladder infra token aws east us-east-1
    """
    import json

    typer.echo(json.dumps(credential(cloud, cluster, region)))
