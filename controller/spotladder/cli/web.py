"""`spotladder web`: serves a page over the jobs of this machine and of a cluster."""

from __future__ import annotations

import asyncio
import errno
from typing import Annotated

import typer

from spotladder.cli.cluster.attempt_clusters import contexts_given
from spotladder.cli.local.selection import StateDirOption
from spotladder.cli.options import ContextForOption
from spotladder.cli.places import places_of
from spotladder.cli.target import ClusterTarget
from spotladder.errors import EnvironmentFailure
from spotladder.web import HOST, PORT


def web(
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="NUMBER", min=0, max=65535, help="Port of the page. 0: any free one.")
    ] = PORT,
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Show the jobs of all namespaces of the cluster.")
    ] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    state_dir: StateDirOption = None,
    context_for: ContextForOption = None,
    target: ClusterTarget,
) -> None:
    """Serve a page with the jobs of this machine and of a cluster.

    The page is read-only, follows every change, and is for this machine only. It has the runs on this machine
    (spotladder run) and the jobs of the configured cluster. --context or --kubeconfig selects only the cluster,
    --state-dir only this machine. Ctrl-C ends the page, not the jobs.

    \b
    Examples:
      spotladder web
      spotladder web --open
      spotladder web --all-namespaces --port 9000
    """

    contexts = contexts_given(context_for)

    async def serve() -> None:
        from spotladder.web.server import serving

        async with places_of(target, state_dir, everywhere=everywhere, contexts=contexts) as places:
            try:
                async with serving(places, HOST, port) as chosen:
                    address = f"http://localhost:{chosen}"
                    typer.echo(f"The page is at {address} (Ctrl-C ends it).", err=True)
                    if open_page:
                        typer.launch(address)
                    await asyncio.Event().wait()
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise EnvironmentFailure(
                    f"port {port} is in use: choose another with --port, or 0 for any free one"
                ) from None

    asyncio.run(serve())
