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

SEARCHED = 4_096
"""Number of characters of a long line that are searched, on both sides of its last mention of the store."""

_SUBJECT = "the checkpoint store "
_AWAY = f"{_SUBJECT}does not answer since "
_BACK = f"{_SUBJECT}answers again"
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
    for line in reversed(text.split("\n")):
        if (at := line.rfind(_SUBJECT)) < 0:
            continue
        if found := list(_LINE.finditer(plain(line[max(0, at - SEARCHED) : at + SEARCHED]))):
            last = found[-1]
            break
    if last is None or last["back"]:
        return None
    try:
        since = seconds_of(last["since"])
    except ValueError:  # Not written by spotladder.
        return None
    message = redacted(without_repetition(last["message"][: 2 * LONGEST_MESSAGE]).strip())[:LONGEST_MESSAGE]
    return ReportedOutage(Outage(since, message), last[0])
