"""The log lines by which a program reports an outage of the checkpoint store. Writes them and finds them in its output.

A program has no permission to write to its cluster, so the controller reads its output to observe an outage that only
the program sees. During an outage the program repeats the line, each time with another duration: a line that no longer
changes is from a process that is gone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from spotladder.output.last_error import plain, without_repetition
from spotladder.output.redact import redacted
from spotladder.timestamps import seconds_of, utc_timestamp

LONGEST_MESSAGE = 300
"""Maximum number of characters of the store's error."""

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
class ReportedOutage:
    """An outage as the program's last line about it reports it. `line` is that line, without a prefix of the logger."""

    outage: Outage
    line: str


def away_line(outage: Outage, now: float, doing: str) -> str:
    """The log line of an outage. `doing` is what the program does meanwhile; it must not contain a colon."""
    since = utc_timestamp(outage.since)
    return f"{_AWAY}{since} ({max(0.0, now - outage.since):.0f} s); {doing}: {' '.join(outage.message.split())}"


def back_line(lasted: float) -> str:
    """The log line that the store answers again, after this many seconds."""
    return f"{_BACK}, after {lasted:.0f} s"


def last_reported(text: str) -> ReportedOutage | None:
    """The current outage according to the last line about it; None without such a line, or if the line reports the end.

    Secrets are removed.
    """
    last = None
    for last in _LINE.finditer(plain(text)):  # noqa: B007 – the last one is used
        pass
    if last is None or last["back"]:
        return None
    since = seconds_of(last["since"])
    message = redacted(without_repetition(last["message"]).strip())[:LONGEST_MESSAGE]
    return ReportedOutage(Outage(since, message), last[0])
