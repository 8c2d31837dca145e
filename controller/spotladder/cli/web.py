"""`spotladder web`: serves a page of the jobs of this machine and of a cluster."""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from spotladder.cli.local.selection import StateDirOption
from spotladder.cli.options import ContextForOption, contexts_given
from spotladder.cli.places import places_of, recorded_place, shared_place_of, warn_of_problems
from spotladder.cli.plan_input import simulator_installed
from spotladder.cli.target import ClusterTarget
from spotladder.errors import EnvironmentFailure, Refused
from spotladder.extras import needs
from spotladder.web import HOST, PORT

if TYPE_CHECKING:
    from spotladder.places.place import FollowedPlace
    from spotladder.web.access import Users
    from spotladder.web.plans import Plan

HOST_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""The names that the chart's value `web.host` may have."""

_PORT_ERRORS = {errno.EADDRINUSE: "is in use", errno.EACCES: "is reserved for administrators"}


def web(
    records: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH|URI",
            help="Show only the jobs recorded there: a folder of checkpoints, of simulated runs, or a timeline.jsonl.",
        ),
    ] = None,
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="NUMBER", min=0, max=65535, help="Port of the page. 0: any free one.")
    ] = PORT,
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Show the jobs of all namespaces of the cluster.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="NAME",
            help="Serve the users of the cluster at this host name, and show each what the cluster lets them see. "
            "Default: serve only this machine.",
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    state_dir: StateDirOption = None,
    context_for: ContextForOption = None,
    target: ClusterTarget,
) -> None:
    """Serve a page with the jobs of this machine and of a cluster.

    The page is read-only, follows every change, and answers only this machine unless --host is given. It has the runs
    on this machine (spotladder run) and the jobs of the configured cluster. --context or --kubeconfig selects only the
    cluster, --state-dir only this machine. Ctrl-C ends the page, not the jobs. With --host, the page has the jobs of
    the cluster, and every request needs a bearer token of it; the chart's value web runs it so.

    \b
    Examples:
      spotladder web
      spotladder web --open
      spotladder web s3://bucket/prefix
      spotladder web --all-namespaces --port 9000
    """

    contexts = contexts_given(context_for)
    if host is not None and (contexts or open_page):
        raise Refused("--host shows one cluster to users elsewhere: remove --context-for and --open")

    if records is not None and (host or contexts or everywhere or state_dir or target.is_explicit or target.namespace):
        raise Refused("PATH or URI shows only the jobs recorded there: remove the options that select other jobs")
    if host is not None and not re.fullmatch(HOST_NAME, host):
        raise Refused(
            f"--host must be a lowercase host name without a port, such as spotladder.example.com: got {host!r}"
        )

    @asynccontextmanager
    async def served() -> AsyncIterator[tuple[list[FollowedPlace], Users | None]]:
        if records is not None:
            yield [recorded_place(records)], None
            return
        if host is None:
            async with places_of(target, state_dir, everywhere=everywhere, contexts=contexts) as places:
                yield places, None
            return
        from spotladder.web.cluster_users import ClusterUsers

        async with shared_place_of(target, state_dir, everywhere=everywhere) as (client, place):
            yield [place], ClusterUsers(client, host)

    async def serve() -> None:
        with needs("operator"):
            from spotladder.web.server import serving

        async with served() as (places, users):
            try:
                async with serving(places, None if users else HOST, port, users, _plan()) as chosen:
                    address = f"http://{host or 'localhost'}:{chosen}"
                    typer.echo(f"The page is at {address} (Ctrl-C ends it).", err=True)
                    if open_page:
                        typer.launch(address)
                    await warn_of_problems(places)
                    await asyncio.Event().wait()
            except OSError as error:
                if error.errno not in _PORT_ERRORS:
                    raise
                why = _PORT_ERRORS[error.errno]
                raise EnvironmentFailure(
                    f"port {port} {why}: choose another with --port, or 0 for any free one"
                ) from None

    asyncio.run(serve())


def _plan() -> Plan:
    """Finds the place of an ended job in its plan, if the packages of the simulator are installed."""
    from spotladder.web.plans import no_plan

    if not simulator_installed():
        return no_plan
    from spotladder.planner.hindsight import hindsight_aside

    return hindsight_aside
