"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def write_text(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Replace the file's text in one step: a reader sees the old text or the new one. The folder must exist.

    `mode` are the file's permissions, less the umask. Raises OSError; the file is unchanged then.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        draft.touch(mode)
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
