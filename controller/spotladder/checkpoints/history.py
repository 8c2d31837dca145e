"""The state that a log's entries describe. Pure: every reader computes the same state."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from spotladder.checkpoints.entries import Commit, Drop, End, Entry, Owner, Snapshot, Start


@dataclass(frozen=True, slots=True)
class History:
    """The state after entry `seq` (-1: of an empty log).

    `commits` are those not dropped, oldest first. `dropped` are folders whose files may still exist. `end` is the
    outcome unless a start follows it. `since_snapshot` is the number of entries that a reader must read.
    """

    seq: int = -1
    owner: Owner = field(default_factory=Owner)
    start: Start | None = None
    commits: tuple[Commit, ...] = ()
    dropped: tuple[str, ...] = ()
    end: End | None = None
    since_snapshot: int = 0

    @property
    def newest(self) -> Commit | None:
        """The commit to resume from: the last in the log, whatever its step."""
        return self.commits[-1] if self.commits else None

    @property
    def attempt(self) -> int:
        """The newest attempt that has started; 0 before the first start."""
        return self.start.attempt if self.start else 0

    def then(self, entries: Iterable[Entry]) -> History:
        """The state after these entries, which follow this one in order. A snapshot may skip entries."""
        state = self
        for entry in entries:
            state = state._after(entry)
        return state

    def _after(self, entry: Entry) -> History:
        state = replace(self, seq=entry.seq, since_snapshot=self.since_snapshot + 1)
        match entry:
            case Start():
                return replace(state, start=entry, end=None, owner=_joined(self.owner, entry.owner))
            case Commit():
                # Only the newest start may commit. The append already ensures this; with a store that breaks its
                # promise, no attempt must resume from a commit of a fenced writer either.
                believed = self.start is not None and self.start.nonce == entry.writer and self.end is None
                return replace(state, commits=(*self.commits, entry)) if believed else state
            case End():
                return replace(state, end=entry)
            case Drop():
                gone = frozenset(entry.paths)
                kept = tuple(commit for commit in self.commits if commit.path not in gone)
                return replace(state, commits=kept, dropped=(*self.dropped, *entry.paths))
            case Snapshot():
                return History(
                    seq=entry.seq,
                    owner=entry.owner,
                    start=entry.start,
                    commits=entry.commits,
                    dropped=entry.dropped,
                    end=entry.end,
                    since_snapshot=1,
                )

    def garbage(self, keep: int, *, broken: Collection[str] = (), final: bool = False) -> tuple[Commit, ...]:
        """The commits that need not be kept: those that are not among the newest `keep` and, until the job has ended
        (`final`: is about to end), not the newest of their attempt. `broken` are paths of incomplete commits, which do
        not count towards `keep` and are not returned.

        Later entries never make a returned commit worth keeping again, so its files may be deleted at any later time.
        """
        intact = [commit for commit in self.commits if commit.path not in broken]
        kept = {commit.seq for commit in intact[-keep:]}
        if self.end is None and not final:
            kept |= {commit.seq for commit in {commit.attempt: commit for commit in intact}.values()}
        return tuple(commit for commit in intact if commit.seq not in kept)


def _joined(known: Owner, more: Owner) -> Owner:
    return Owner(known.job or more.job, known.namespace or more.namespace, known.uid or more.uid)
