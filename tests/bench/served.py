"""A server of the page for its benchmark. It prints its port. Each line of its input is the first job's new message."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from spotladder.core.model import codec
from spotladder.records.timeline import read
from spotladder.web.server import serving
from tests.web.builders import RECORDED, Shelf, job

PHASES = ("Running", "Provisioning", "Succeeded")


async def serve(number: int) -> None:
    """Serve this number of jobs until the input ends."""
    recorded = read(RECORDED).state
    states = [codec.pack(replace(recorded, message=str(each))) for each in range(number)]
    shelf = Shelf(*(job(f"job-{each:04d}", PHASES[each % 3], state=state) for each, state in enumerate(states)))
    async with serving([shelf], "127.0.0.1", 0) as port:
        print(port, flush=True)
        while message := await asyncio.to_thread(sys.stdin.readline):
            since = "2026-11-29T00:00:00Z"
            waiting = {"reason": "NoCapacity", "message": message.strip(), "since": since}
            changed = job("job-0000", "Provisioning", state=states[0], waiting=waiting)
            shelf.put(changed, *shelf.held[1:])


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
