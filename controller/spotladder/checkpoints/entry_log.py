"""The entries of a job's commit log: reads its tail, appends entries, ends the job.

The protocol:

1. An append creates `log/<seq + 1>` with put-if-absent, where `seq` is the last entry that the writer has read. So a
   writer has read every entry before its own, and if two writers append at once, one succeeds and the other reads the
   new entry first.
2. After the create, whether it succeeded, failed or got no response, the writer reads the tail again. The entry counts
   if the tail contains its nonce. This recognizes an entry whose response was lost. It also detects a create that
   succeeded only because a compaction had deleted the object of that name: the snapshot at the tail then does not
   include the entry.
3. A start fences all earlier starts. An append by an older writer raises Fenced, because by rule 1 it has read the
   start.
4. A reader reads backwards from the newest entry to the newest snapshot, and accepts the result only if a later
   listing shows no newer entry. Then no compaction ran meanwhile, after which a late request of an older writer could
   have recreated a deleted entry.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from spotladder.backoff import delay
from spotladder.checkpoints.brief import brief
from spotladder.checkpoints.entries import Commit, End, Entry, Owner, Snapshot, decode, encode
from spotladder.checkpoints.entry_keys import key_of, number_of
from spotladder.checkpoints.history import History
from spotladder.checkpoints.store import Store, StoreRefused, folder_of, listed
from spotladder.errors import Fenced, InvalidSpec, LogCorrupt, StoreUnavailable, TooLarge

TRIES = 5
"""Number of attempts of an append, or of a read that found a gap, while the store does not answer."""

APPEND_RETRY_INTERVAL = 0.4
"""Seconds before the first retry of an append."""

READ_RETRY_INTERVAL = 0.1
"""Seconds before the first retry of a read that found a gap."""

LONGEST_RETRY_INTERVAL = 10.0
"""Maximum seconds before a retry."""

AT_ONCE = 16
"""Number of entries that are read in parallel."""

SMALL_ENTRY = 1 << 20
"""Entries of at most this number of bytes are read in parallel; larger ones one after the other."""

LARGEST_TAIL = 64 << 20
"""Maximum bytes of the entries after the newest snapshot."""

MAX_ENTRIES = 10_000
"""Maximum number of objects in the log's folder. The log is compacted long before."""

_decoding = threading.Lock()
"""Large entries are parsed one at a time in a process: their parsed form takes many times their size."""

# Such as .DS_Store, .nfs0000… or a console's placeholder for the folder.
_LEFT_BY_TOOLS = re.compile(r"log/(\.[^/]*|)")


class ForeignLog(LogCorrupt):
    """The checkpoint folder belongs to another job."""

    def __init__(self, uri: str, owner: Owner, asked_for: Owner) -> None:
        self._uri = uri
        self._owner = owner
        self._asked_for = asked_for
        super().__init__(self._message(str(owner)))

    def __reduce__(self) -> tuple[type[ForeignLog], tuple[str, Owner, Owner]]:
        return ForeignLog, (self._uri, self._owner, self._asked_for)

    def message_for(self, namespace: str) -> str:
        """The message for users of that namespace, who may not know the names of other namespaces' jobs."""
        if self._owner.namespace in ("", namespace):
            return str(self)
        return self._message("a job of another namespace")

    def _message(self, owner: str) -> str:
        return (
            f"{self._uri}: these checkpoints belong to {owner}, not to {self._asked_for}: use another checkpoint "
            "address or job name; nothing was changed"
        )


class EntryLog:
    """The log of `job` below `<store>/<job>/`.

    An empty `job` means that the store's address is the job's own folder and that any owner is accepted. `clock`
    returns the time that entries record (no decision depends on it); `pause` waits between retries; `new_nonce`
    returns a unique name for an entry. With `brief`, only the newest commit keeps the list of its files.
    """

    def __init__(
        self,
        store: Store,
        job: str = "",
        *,
        namespace: str = "",
        uid: str = "",
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
        new_nonce: Callable[[], str] = lambda: secrets.token_hex(8),
        brief: bool = False,
    ) -> None:
        if job != Path(job).name or job.startswith("."):
            raise InvalidSpec(
                f"{job!r} is not a job name: expected the name of a folder below the checkpoint address", path="job"
            )
        self.store = folder_of(store, job)
        self.owner = Owner(job, namespace, uid)
        self.clock = clock
        self.new_nonce = new_nonce
        self._pause = pause
        self.brief = brief

    @property
    def uri(self) -> str:
        """The job's folder."""
        return self.store.uri

    # --- reads ------------------------------------------------------------------------------------------------------

    def tail(self, after: int = -1) -> list[Entry]:
        """The entries after `after`, oldest first; if they were compacted, the list begins with the snapshot.

        Read access is enough. Raises LogCorrupt, StoreUnavailable.
        """
        return self._tail(after, {})

    def _tail(self, after: int, known: dict[int, Entry]) -> list[Entry]:
        """Return `tail`; before this call, the entries in `known` existed with the same content."""
        missing = -1
        for _ in self._tries(READ_RETRY_INTERVAL):
            while unread := [seq for seq in self._numbers(after) if seq not in known and seq > _snapshot_in(known)]:
                if not self._read_backwards(unread, known):
                    break
                if len(known) > MAX_ENTRIES:
                    raise TooLarge(f"{self.uri}/log", "entries", len(known), MAX_ENTRIES)
            else:
                entries, missing = _consecutive(known, after)
                if missing < 0:
                    return entries
            known = {}
        if missing < 0:
            raise StoreUnavailable(f"{self.uri}/log: was compacted during every attempt to read it: retry")
        raise LogCorrupt(
            f"{self.uri}/{key_of(missing)}: this log entry is missing although later ones exist: restore it from the "
            "bucket's versions or a backup, or continue in a new checkpoint folder; nothing was changed"
        )

    def read(self) -> History:
        """The history of the whole log. Raises ForeignLog if the log belongs to another job."""
        return self.follow(History())

    def follow(self, history: History) -> History:
        """`history` with the entries appended since; one listing if there are none. A log that has disappeared, or is
        another one, is read from its beginning."""
        if history.seq >= 0:
            numbers = self._numbers(history.seq - 1)
            if numbers == [history.seq]:
                return self.checked(history)
            if not numbers:
                history = History()
        return self.checked(history.then(self.tail(history.seq)))

    def commits(self) -> tuple[Commit, ...]:
        """The commits that are not dropped, oldest first."""
        return self.read().commits

    def newest(self) -> Commit | None:
        """The newest commit, unverified; None if there is no commit."""
        return self.read().newest

    def _numbers(self, after: int) -> list[int]:
        numbers = []
        for meta in listed(self.store, "log/", key_of(after) if after >= 0 else None, most=MAX_ENTRIES):
            number = number_of(meta.key)
            if number is not None:
                numbers.append(number)
            elif not _LEFT_BY_TOOLS.fullmatch(meta.key):
                raise LogCorrupt(
                    f"{self.uri}/{meta.key}: foreign object in a commit log: move it away, or use another checkpoint "
                    "folder; nothing was changed"
                )
        return sorted(numbers)

    def _read_backwards(self, numbers: list[int], known: dict[int, Entry]) -> bool:
        """Read entries into `known`, newest first, down to a snapshot.

        False if one of them no longer exists.
        """
        size, newest = 0, True
        for end in range(len(numbers), 0, -AT_ONCE):
            chunk = numbers[max(0, end - AT_ONCE) : end]
            for seq, content in zip(reversed(chunk), self._contents(chunk), strict=True):
                if content is None:
                    return False
                size += len(content)
                if size > LARGEST_TAIL:
                    raise TooLarge(f"{self.uri}/log", "bytes", size, LARGEST_TAIL, "keep fewer checkpoints")
                entry = self._decoded(content, seq)
                known[seq] = brief(entry, files=newest) if self.brief else entry
                newest = newest and not isinstance(entry, Commit)
                if isinstance(entry, Snapshot):
                    return True
        return True

    def _contents(self, numbers: list[int]) -> Iterator[bytes | None]:
        """The entries, newest first; None for one that no longer exists."""
        keys = [key_of(seq) for seq in numbers]
        try:
            found = self.store.get_many(keys, SMALL_ENTRY)
        except TooLarge:
            found = []
        yield from reversed(found)
        for key in reversed(keys[: len(keys) - len(found)]):
            try:
                yield from self.store.get_many([key])
            except TooLarge as error:
                raise LogCorrupt(f"{error}: continue in a new checkpoint folder; nothing was changed") from None

    def _decoded(self, content: bytes, seq: int) -> Entry:
        name = f"{self.uri}/{key_of(seq)}"
        if len(content) <= SMALL_ENTRY:
            return decode(content, name, seq)
        with _decoding:
            return decode(content, name, seq)

    def _tries(self, first: float) -> Iterator[int]:
        for failures in range(TRIES):
            if failures:
                self._wait(first, failures)
            yield failures

    def _wait(self, first: float, failures: int) -> None:
        """Wait before the next attempt after `failures` failures: `first` seconds, doubled each time."""
        self._pause(delay(first, LONGEST_RETRY_INTERVAL, failures, jitter=1.0))

    # --- writes -----------------------------------------------------------------------------------------------------

    def end_as_controller(self, outcome: str, *, attempt: int | None = None, message: str = "") -> End | None:
        """Append the job's outcome from outside a writer, which fences every writer.

        Returns the entry, or the existing one if it has the same outcome; None if the job never started. `attempt` is
        the newest that the caller knows: raises Fenced if the log has a newer one.
        """
        nonce = self.new_nonce()

        def build(history: History) -> End:
            if attempt is not None and history.attempt > attempt:
                raise Fenced(f"{self.uri}: attempt {history.attempt} has started, attempt {attempt} cannot end the job")
            return End(history.seq + 1, nonce, self.clock(), "", history.attempt, outcome, message)

        history = self.read()
        if history.seq < 0:
            return None
        if history.end and history.end.outcome == outcome:
            return history.end
        _, entry = self.append(history, build)
        assert isinstance(entry, End)  # noqa: S101 – `build` returns no other kind
        return entry

    def append(self, history: History, build: Callable[[History], Entry]) -> tuple[History, Entry]:
        """Append the entry that `build` makes for the newest history. Returns the new history and the entry.

        `build` gives its entry the number after that history and always the same nonce; it raises Fenced if the entry
        is not allowed there. Raises StoreUnavailable if the outcome is unknown; a repeated call finds it out.
        """
        failures = 0
        if history.seq >= 0 and self.store.head(key_of(history.seq)) is None:
            # The bucket was emptied or rolled back. An entry after the gap would make the log unreadable.
            history = self.read()
        while True:
            entry = build(history)
            try:
                created = self.store.put_if_absent(key_of(entry.seq), encode(entry))
                news = self._tail(history.seq, {entry.seq: entry} if created else {})
            except StoreRefused:
                raise
            except StoreUnavailable:
                failures += 1
                if failures == TRIES:
                    raise
                self._wait(APPEND_RETRY_INTERVAL, failures)
                continue
            history = self.checked(history.then(news))
            for found in news:
                if found.nonce == entry.nonce:
                    return history, found
            if not news:  # The store reports that the entry exists, but does not list it yet.
                failures += 1
                if failures == TRIES:
                    raise StoreUnavailable(
                        f"{self.uri}/{key_of(entry.seq)}: exists but is not listed: check the file system's cache"
                    )
                self._wait(APPEND_RETRY_INTERVAL, failures)

    def checked(self, history: History) -> History:
        """The history, if the log belongs to this job. Raises ForeignLog."""
        if history.owner.is_same(self.owner):
            return history
        raise ForeignLog(self.uri, history.owner, self.owner)


def _snapshot_in(known: dict[int, Entry]) -> int:
    return max((seq for seq, entry in known.items() if isinstance(entry, Snapshot)), default=-1)


def _consecutive(known: dict[int, Entry], after: int) -> tuple[list[Entry], int]:
    """The entries in order from the newest snapshot, and the number of the first missing entry (-1 if none is
    missing)."""
    first = _snapshot_in(known)
    entries = [known[seq] for seq in sorted(known) if seq >= first]
    for expected, entry in enumerate(entries, start=after + 1 if first < 0 else first):
        if entry.seq != expected:
            return [], expected
    return entries, -1
