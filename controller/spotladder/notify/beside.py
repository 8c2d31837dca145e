"""Notifications beside a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from spotladder.notify.follow import Follower
from spotladder.notify.outbox import Outbox
from spotladder.notify.targets import Target
from spotladder.places.this_machine import ThisMachine


async def notify_of_runs(
    root: Path, targets: Sequence[Target], given_up: Callable[[str], None], ready: Callable[[None], None]
) -> None:
    """Tell the targets about the runs below this state folder until cancelled, and then about the end of the run."""
    here, outbox = ThisMachine(root), Outbox(targets, given_up)
    here.look()
    follower = Follower([here], outbox)
    sending = asyncio.create_task(outbox.run())
    try:
        ready(None)
        await follower.follow()
    finally:
        here.look()
        follower.look()
        await outbox.finish()
        sending.cancel()
