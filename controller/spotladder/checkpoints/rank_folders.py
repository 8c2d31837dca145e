"""The folders of a commit for the files of single ranks."""

from __future__ import annotations

import re

_RANK = re.compile(r"rank-(\d{4,})/")


def rank_folder(rank: int) -> str:
    """The folder inside a commit for files that only this rank needs."""
    return f"rank-{rank:04d}"


def rank_of(name: str) -> int | None:
    """The rank in whose folder this file of a commit is; None outside of such a folder."""
    match = _RANK.match(name)
    return int(match[1]) if match else None
