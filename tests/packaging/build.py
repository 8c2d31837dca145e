"""Builds the distributions from a copy of the repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_COPIED = (
    ".venv*", ".git", ".bench", ".mutation", ".*_cache", ".hypothesis", "__pycache__", "node_modules", "dist",
    ".spotladder", "cdktf.out",
)  # fmt: skip


def copy(folder: Path) -> Path:
    """Copy the repository without files that runs create."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    return folder


def build(target: str, tree: Path, folder: Path) -> Path:
    """Build a target of hatchling into the folder. Returns the archive."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True, timeout=600)
    (archive,) = folder.iterdir()
    return archive
