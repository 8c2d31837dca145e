"""The stored output of a job's programs, beside its commit log: the end of each source's output for each attempt.

    <uri>/<job>/outputs/<uid>/0003/driver.log.gz          the end of the output of attempt 3's driver
    <uri>/<job>/outputs/<uid>/0003.1/workers-0-1.log.gz   a rank of the first restart in place inside attempt 3

1. An object is created once and never changed, so two controllers do no harm. Each attempt has
   its own folder, so an old attempt never overwrites the output of a newer one. So has each job: one with the name of
   a deleted job does not show its output.
2. The caller removes secrets from the text: everyone with read access to the checkpoints can read the output.
3. The output of the newest `KEPT_ATTEMPTS` attempts is kept, as many as `status.attempts` has, and for each attempt
   that of the newest `KEPT_RESTARTS` restarts in place.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from spotladder.checkpoints.store import Store, folder_of, listed
from spotladder.errors import LogCorrupt, TooLarge

FOLDER = "outputs"

KEPT_ATTEMPTS = 20

KEPT_RESTARTS = 5

LONGEST = 262_144
"""Maximum number of bytes kept for one source, uncompressed: the end of its output."""

LARGEST_STORED = 2 * LONGEST
"""Maximum bytes of a stored object that is read, packed and unpacked."""

MAX_STORED = 100_000
"""Maximum number of objects in the folder of a job's output."""

CUT = "[… the beginning of this output is not kept]\n"

_KEY = re.compile(r"(\d{4,})(?:\.(\d+))?/([a-z0-9][a-z0-9.-]*)\.log\.gz")
_UNSAFE = re.compile(r"[^a-z0-9.-]+")


@dataclass(frozen=True, slots=True, order=True)
class Output:
    """The output of one source of an attempt. `restart` counts restarts in place; `source` is "driver" or a rank."""

    attempt: int
    restart: int
    source: str

    @property
    def key(self) -> str:
        """The object's key in the store of `of_job`."""
        restart = f".{self.restart}" if self.restart else ""
        source = _UNSAFE.sub("-", self.source.lower()).strip("-.") or "output"
        return f"{self.attempt:04d}{restart}/{source}.log.gz"

    @property
    def title(self) -> str:
        """The source as messages name it."""
        return f"{self.source} after restart {self.restart}" if self.restart else self.source


def of_job(folder: Store, uid: str) -> Store:
    """The part of a job's folder that has its output. `uid` is that of the job; "" if it is unknown."""
    return folder_of(folder, f"{FOLDER}/{uid}")


def end_of(text: str, longest: int = LONGEST) -> str:
    """The last complete lines that fit into this many bytes of UTF-8. If lines are cut, the first line says so."""
    data = text.encode(errors="replace")
    if len(data) <= longest:
        return text
    return CUT + complete(data[len(data) - longest :].decode(errors="ignore"))


def complete(text: str) -> str:
    """The text without its first line, which is cut and may have the end of a secret. A line that a progress bar writes
    again and again is cut at the first of its carriage returns."""
    return text.partition("\n")[2] or text.partition("\r")[2]


def keep(store: Store, output: Output, text: str) -> bool:
    """Store the end of the text; False if this source's output is stored already. Raises StoreUnavailable."""
    return store.put_if_absent(output.key, gzip.compress(end_of(text).encode(errors="replace"), mtime=0))


def kept(store: Store, attempt: int | None = None) -> list[Output]:
    """The stored outputs of one attempt or of all, in order, the driver's first. Raises StoreUnavailable."""
    found = [match for meta in listed(store, "", most=MAX_STORED) if (match := _KEY.fullmatch(meta.key))]
    outputs = [Output(int(match[1]), int(match[2] or 0), match[3]) for match in found]
    chosen = [output for output in outputs if attempt is None or output.attempt == attempt]
    return sorted(chosen, key=lambda output: (output.attempt, output.restart, output.source != "driver", output.source))


def read(store: Store, outputs: Sequence[Output]) -> list[str]:
    """The texts; "" for an output that was deleted meanwhile. Raises LogCorrupt, TooLarge, StoreUnavailable."""
    keys = [output.key for output in outputs]
    found = zip(keys, store.get_many(keys, LARGEST_STORED), strict=True)
    return [_text(data, f"{store.uri}/{key}") if data else "" for key, data in found]


def _text(data: bytes, name: str) -> str:
    unpacking = zlib.decompressobj(wbits=31)  # gzip
    try:
        text = unpacking.decompress(data, LARGEST_STORED)
    except zlib.error as error:
        raise LogCorrupt(f"{name}: is not a gzip file ({error}): delete it") from None
    if unpacking.unconsumed_tail:
        raise TooLarge(name, "bytes when it is unpacked", LARGEST_STORED + 1, LARGEST_STORED, "delete it")
    if not unpacking.eof:
        raise LogCorrupt(f"{name}: is not a gzip file (it is cut off): delete it")
    return text.decode(errors="replace")


def trim(store: Store) -> int:
    """Delete the output of all but the newest attempts, and of each all but its newest restarts in place. Returns the
    number of deleted objects. Raises StoreUnavailable."""
    outputs = kept(store)
    starts: dict[int, set[int]] = defaultdict(set)
    for output in outputs:
        starts[output.attempt].add(output.restart)
    kept_attempts = sorted(starts)[-KEPT_ATTEMPTS:]
    stay = {(attempt, restart) for attempt in kept_attempts for restart in sorted(starts[attempt])[-KEPT_RESTARTS:]}
    gone = [output.key for output in outputs if (output.attempt, output.restart) not in stay]
    if gone:
        store.delete(gone)
    return len(gone)
