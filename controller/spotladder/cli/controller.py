"""`spotladder controller`: the process that reconciles the TieredJobs of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spotladder.cli import kubernetes_names
from spotladder.extras import needs


def controller(
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="YAML file with settings (docs/settings.md)."),
    ] = None,
    kubeconfig: Annotated[
        str | None, typer.Option(metavar="FILE", help="Kubeconfig of the home cluster. Not needed in a pod.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context in the kubeconfig.")] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            "-n",
            parser=kubernetes_names.namespace,
            help="Reconcile only this namespace; repeatable.",
        ),
    ] = None,
) -> None:
    """Run the controller: launch the attempts of each TieredJob, watch them, and fall back to the next tier.

    \b
    Examples:
      spotladder controller                       (in a pod)
      spotladder controller --kubeconfig ~/.kube/config -n team-a
    """
    import asyncio

    with needs("operator"):
        from spotladder.operator.controller import Controller
        from spotladder.operator.reporting.logging import set_up
        from spotladder.operator.settings import read_settings

    flags = {"kubeconfig": kubeconfig, "context": context, "namespaces": tuple(namespace or ())}
    set_up()
    settings = read_settings(config, flags)

    async def run() -> None:
        await Controller(settings).run()

    asyncio.run(run())
