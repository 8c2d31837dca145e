"""Writes a file atomically: completely or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def write_text(path: Path, text: str, *, mode: int = 0o666, durable: bool = False) -> None:
    """Replace the file's text in one step: a reader sees the old text or the new one. The folder must exist.

    `mode` are the file's permissions, less the umask. A `durable` text is on the disk before it replaces the old one,
    so that after a power cut the file has one of the two. Raises OSError; the file is unchanged then.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        draft.touch(mode)
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
