"""`spotladder notify`: tells people and programs what happens to jobs."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spotladder.cli import kubernetes_names
from spotladder.cli.local.selection import StateDirOption
from spotladder.cli.places import places_of, warn_of_problems
from spotladder.cli.target import ClusterTarget
from spotladder.errors import EnvironmentFailure, InvalidSpec, Refused
from spotladder.extras import needs
from spotladder.notify.notices import Kind

if TYPE_CHECKING:
    from spotladder.notify.notices import Notice
    from spotladder.notify.spans import Spans
    from spotladder.notify.targets import Target

KEY = "SPOTLADDER_WEBHOOK_KEY"
"""The environment variable with the key that signs webhooks."""


def notify(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", parser=kubernetes_names.job, help="Names of jobs to follow. Default: all."),
    ] = None,
    *,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to", metavar="URL", help="Address of a receiver. Repeatable. Other users see it: use --to-file."
        ),
    ] = None,
    to_file: Annotated[
        Path | None, typer.Option("--to-file", metavar="FILE", help="File with the addresses, one in a line.")
    ] = None,
    on: Annotated[
        list[Kind] | None,
        typer.Option(
            "--on",
            metavar="KIND",
            case_sensitive=False,
            help=f"One of {', '.join(Kind)}. Repeatable. Default: all.",
        ),
    ] = None,
    otlp: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="OTEL_EXPORTER_OTLP_ENDPOINT",
            help="Collector of OpenTelemetry, such as http://collector:4318, that gets a trace of each restart.",
        ),
    ] = "",
    test: Annotated[bool, typer.Option("--test", help="Send one test message to each receiver, and end.")] = False,
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Follow the jobs of all namespaces of the cluster.")
    ] = False,
    state_dir: StateDirOption = None,
    target: ClusterTarget,
) -> None:
    """Tell people and programs what happens to jobs, from now on, until Ctrl-C.

    Receivers are the services of Apprise (Slack, Teams, e-mail, PagerDuty and others: https://appriseit.com/services/)
    and webhooks: webhook+https://HOST/PATH gets batches of CloudEvents, signed as "Standard Webhooks" describes with
    the key in SPOTLADDER_WEBHOOK_KEY. What happens within ten seconds is one message. A receiver that fails is tried
    eight times within minutes; a message that is lost is printed.

    \b
    Examples:
      spotladder notify --to-file receivers.txt --test
      spotladder notify --to-file receivers.txt --all-namespaces
      spotladder notify digits --to-file receivers.txt
      spotladder notify --to webhook+https://hooks.example/jobs --on FellBack --on Failed
      spotladder notify --otlp http://localhost:4318
    """
    targets = receivers(to or [], to_file) if to or to_file or test or not otlp else []

    async def run() -> None:
        from spotladder.notify.follow import Follower
        from spotladder.notify.outbox import Outbox
        from spotladder.notify.traces import Tracer

        if test:
            return await _test(targets)
        # A pod that is replaced gets SIGTERM: what waits is sent, as at Ctrl-C.
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
        spans = spans_to(otlp) if otlp else None
        outbox = Outbox(targets, given_up)
        async with places_of(target, state_dir, everywhere=everywhere) as places, asyncio.TaskGroup() as group:
            followed = ", ".join(place.title for place in places)
            receiving = ", ".join([*(each.name for each in targets), *(["OpenTelemetry"] if spans else [])])
            typer.echo(f"follows {followed}; tells {receiving} (Ctrl-C ends it)", err=True)
            group.create_task(outbox.run())
            group.create_task(warn_of_problems(places))
            if spans:
                group.create_task(Tracer(places, spans, given_up).run())
            try:
                await Follower(places, outbox, frozenset(on or Kind), _print, names=names or ()).follow()
            finally:
                await outbox.finish()
                if spans:
                    spans.close()

    asyncio.run(run())


def receivers(to: list[str], to_file: Path | None) -> list[Target]:
    """The receivers of both options. Raises Refused, InvalidSpec and EnvironmentFailure."""
    try:
        lines = to_file.read_text(encoding="utf-8-sig").splitlines() if to_file else []
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise EnvironmentFailure(
            f"{to_file}: cannot be read: {why}; name a text file with an address in each line"
        ) from None
    listed = ((f"{to_file}:{number}", line.strip()) for number, line in enumerate(lines, start=1))
    given = [*(("", url) for url in to), *((place, url) for place, url in listed if url and not url.startswith("#"))]
    if not given:
        raise Refused("there is no receiver: name one with --to URL, or write addresses into a file for --to-file")
    with needs("notify"):
        from spotladder.notify.targets import target_of

        targets = []
        for place, url in given:
            try:
                targets.append(target_of(url, os.environ.get(KEY, "")))
            except InvalidSpec as error:
                raise InvalidSpec(error.message, where=place) from None
        return targets


def spans_to(otlp: str) -> Spans:
    """The traces that go to this collector. Raises EnvironmentFailure."""
    with needs("notify"):
        from spotladder.notify.spans import Spans
    return Spans(otlp)


def given_up(sentence: str) -> None:
    """Print that a message was not delivered."""
    typer.echo(f"warning: {sentence}", err=True)


async def _test(targets: list[Target]) -> None:
    """Send a test message to each receiver. Raises EnvironmentFailure if one does not take it."""
    import time

    from spotladder.notify.messages import Message
    from spotladder.notify.notices import Notice
    from spotladder.notify.targets import Undelivered

    about = Notice(
        kind=Kind.SUCCEEDED, where="test", namespace="test", job="test", uid="", attempt=1, detail="", at=time.time(),
        text="This is a test message of spotladder notify. No job has ended.",
    )  # fmt: skip
    failed = []
    for each in targets:
        try:
            await each.send(Message((about,)))
            typer.echo(f"{each.name}: delivered", err=True)
        except Undelivered as error:
            failed.append(f"{each.name}: {error}")
    if failed:
        raise EnvironmentFailure("; ".join(failed))


def _print(notice: Notice) -> None:
    typer.echo(f"{notice.kind}: {notice.text}")
