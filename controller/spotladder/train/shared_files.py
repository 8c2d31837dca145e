"""The files that several ranks report to Ray Train under the same name, of which a commit has one.

Ranks that report to Ray Train share the folder of the commit, and stock integrations make several ranks report the same
names: each of 8 ranks on a machine copies the whole folder that they have written together, perhaps while another rank
still writes. One rank owns each name, and only this rank uploads the file: the rank that the name itself has
(`rng_state_1.pth`), else rank 0, else the lowest rank. Different content is a warning: a report never ends the job.
"""

from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from spotladder.checkpoints.upload import files_below
from spotladder.train.pending import Pending

_log = logging.getLogger("spotladder.train")

SAMPLE = 1 << 20
"""Bytes at the beginning and at the end of a file by which the files of two ranks are compared. To read all of a large
checkpoint on every rank would take longer than its upload."""

_RANK = re.compile(r"(?:rank|states?|^_)[_-]?(\d+)(?!\d)", re.IGNORECASE)
"""The rank in a file name, as PyTorch (`__1_0.distcp`, too), DeepSpeed, Accelerate and transformers write it."""


class SharedFiles:
    """One rank's knowledge of these files. Warns once of each pattern of names whose files differ."""

    def __init__(self, rank: int, size: int) -> None:
        self._rank = rank
        self._size = size
        self._warned: set[str] = set()

    def offer(self, pending: Pending) -> dict[str, str]:
        """The files of this rank's folder, and of each the size and a checksum of its beginning and end; none if other
        ranks cannot have the same names."""
        if self._size == 1 or not pending.checkpoint.path or pending.checkpoint.replicated:
            return {}
        while True:
            folder = pending.folder
            found = _samples(folder)
            if folder == pending.folder:  # Else the program has removed its folder since; its files were copied before.
                return found

    def owners(self, offers: Sequence[Mapping[str, str]]) -> dict[str, int]:
        """On rank 0: the names that several ranks have, each with the rank that owns it."""
        having: dict[str, dict[int, str]] = {}
        for rank, offer in enumerate(offers):
            for name, sample in offer.items():
                having.setdefault(name, {})[rank] = sample
        several = {name: ranks for name, ranks in having.items() if len(ranks) > 1}
        owners = {name: _owner(name, ranks) for name, ranks in several.items()}
        for name, ranks in sorted(several.items()):
            if len(set(ranks.values())) > 1:
                self._warn(name, owners[name])
        return owners

    def others(self, owners: Mapping[str, int]) -> frozenset[str]:
        """The names that this rank does not upload."""
        return frozenset(name for name, owner in owners.items() if owner != self._rank)

    def _warn(self, name: str, owner: int) -> None:
        pattern = re.sub(r"\d+", "N", name)  # the same for the file of every step and rank
        if pattern not in self._warned:
            self._warned.add(pattern)
            _log.warning(
                "several ranks report a checkpoint with a file %r of different content: keeping the file of rank %d; "
                "include the rank in the name to keep all",
                name,
                owner,
            )


def _samples(folder: Path | None) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        for name, file in files_below(folder) if folder is not None else ():
            with file.open("rb") as opened:
                size = file.stat().st_size
                crc = zlib.crc32(opened.read(SAMPLE))
                if size > SAMPLE:
                    opened.seek(max(SAMPLE, size - SAMPLE))
                    crc = zlib.crc32(opened.read(SAMPLE), crc)
            found[name] = f"{size}-{crc:08x}"
    except OSError:
        pass  # The upload reports it.
    return found


def _owner(name: str, ranks: Collection[int]) -> int:
    named = rank_in(name)
    return named if named is not None and named in ranks else min(ranks)


def rank_in(name: str) -> int | None:
    """The rank that this file name contains."""
    named = _RANK.search(name.rpartition("/")[2])
    return int(named[1]) if named else None
