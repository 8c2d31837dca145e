"""The published files of a Go module: the sources of Karpenter and of charts, at the versions that are pinned here."""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from zipfile import ZipFile

from tests.absent import absent


@cache
def module(name: str, version: str) -> Path:
    """The folder of a module's files, which Go downloads once; skips without Go or without the module.

    Go does not unpack a module that needs a newer Go than the installed one. Its files are read all the same.
    """
    go = shutil.which("go")
    if go is None:
        absent(f"go is not installed, which {name} comes with", "infra")
    done = subprocess.run(
        [go, "mod", "download", "-json", f"{name}@{version}"], capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout or "{}")
    if "Dir" in found:
        return Path(found["Dir"])
    if "Zip" not in found:
        absent(f"{name}@{version} is not available: {done.stdout[-300:]}", "infra")
    folder = tempfile.mkdtemp(prefix="spotladder-gomodule-")
    atexit.register(shutil.rmtree, folder)
    with ZipFile(found["Zip"]) as packed:
        packed.extractall(folder)
    return Path(folder, f"{name}@{version}")
