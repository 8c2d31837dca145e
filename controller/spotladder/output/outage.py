"""The lines by which a program says that it cannot reach the checkpoint store, and how they are found in its output.

A program has no right to write into its cluster, so what it logs is how a controller hears of an outage that the
program alone sees. While an outage lasts a line is logged again and again, each with another duration: lines that do
not change any more are of a process that is gone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from spotladder.output.last_error import plain, without_repetition
from spotladder.output.redact import redacted

LONGEST_MESSAGE = 300
"""Characters of what the store or the network said."""

_AWAY = "the checkpoint store does not answer since "
_BACK = "the checkpoint store answers again"
_LINE = re.compile(
    rf"{re.escape(_AWAY)}(?P<since>\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ) \(\d+ s\); [^:]*: (?P<message>.*)"
    rf"|(?P<back>{re.escape(_BACK)})"
)


@dataclass(frozen=True, slots=True)
class Outage:
    """The store has not answered since `since`, in seconds since the epoch by the program's clock. `message` is the
    newest error."""

    since: float
    message: str


@dataclass(frozen=True, slots=True)
class Told:
    """An outage as the last line about it says; `line` is that line from its first word on."""

    outage: Outage
    line: str


def away_line(outage: Outage, now: float, doing: str) -> str:
    """`doing` is what the program does meanwhile; it holds no colon."""
    since = datetime.fromtimestamp(int(outage.since), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{_AWAY}{since} ({max(0.0, now - outage.since):.0f} s); {doing}: {' '.join(outage.message.split())}"


def back_line(lasted: float) -> str:
    """The log line that the store answers again, after this many seconds."""
    return f"{_BACK}, after {lasted:.0f} s"


def last_told(text: str) -> Told | None:
    """The outage that lasts by the last line about it; None without such a line, or where it says that it is over.

    Secrets are removed.
    """
    last = None
    for last in _LINE.finditer(plain(text)):  # noqa: B007 – the last one is used
        pass
    if last is None or last["back"]:
        return None
    since = datetime.strptime(last["since"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    message = redacted(without_repetition(last["message"]).strip())[:LONGEST_MESSAGE]
    return Told(Outage(since, message), last[0])
