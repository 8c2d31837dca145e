"""The part of a log that a controller keeps in memory: it follows many logs, whose authors it does not trust.

The lists of files, of dropped folders and of old commits are as long as a job makes them. A controller uses only the
size of the newest commit.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.checkpoints.entries import Commit, Drop, Entry, Snapshot
from spotladder.checkpoints.history import History

RECENT = 64
"""Number of commits that are kept: a newer one may be dropped."""

MAX_DROPPED = 1_000
"""Number of folders that are read from one entry; each commit drops a few."""


def brief(entry: Entry, *, files: bool) -> Entry:
    """The entry without lists that a controller does not use. `files`: the newest commit in it keeps its files."""
    match entry:
        case Commit():
            return replace(entry, metrics={}, more={}, files=entry.files if files else ())
        case Snapshot():
            recent = entry.commits[-RECENT:]
            newest = recent[-1] if recent and files else None
            commits = (replace(one, metrics={}, more={}, files=one.files if one is newest else ()) for one in recent)
            start = entry.start and replace(entry.start, more={})
            end = entry.end and replace(entry.end, more={})
            return replace(entry, start=start, end=end, commits=tuple(commits), dropped=())
        case Drop():
            return replace(entry, paths=entry.paths[:MAX_DROPPED])
        case _:
            return replace(entry, more={})


def brief_history(history: History) -> History:
    """The history without the lists of files and of dropped folders, with the newest commits only."""
    commits = (commit if not commit.files else replace(commit, files=()) for commit in history.commits[-RECENT:])
    return replace(history, commits=tuple(commits), dropped=())
