"""The published files of a Go module: the sources of Karpenter and of charts, at the versions that are pinned here."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from tests.absent import absent


def module(name: str, version: str) -> Path:
    """The folder of a module in Go's cache, which downloads it once; skips without Go or without the module."""
    go = shutil.which("go")
    if go is None:
        absent(f"go is not installed, which {name} comes with", "infra")
    done = subprocess.run(
        [go, "mod", "download", "-json", f"{name}@{version}"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        absent(f"{name}@{version} is not available: {done.stdout[-300:]}", "infra")
    return Path(json.loads(done.stdout)["Dir"])
