"""Programs in the place of real ones."""

from __future__ import annotations

from pathlib import Path


def program(folder: Path, name: str, script: str) -> Path:
    """A shell script as a program in a folder, which is made for it."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
