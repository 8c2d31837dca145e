"""A later version of spotladder, made of the files of this one: each record that it writes has a field that this
version does not know."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "controller" / "spotladder"
VERSION = "0.99.0"
FIELD = "laterField"

PATCHES = {
    "checkpoints/entries.py": ('{**raw.pop("more", {}), **raw}', "{{**raw.pop('more', {{}}), {added}, **raw}}"),
    "checkpoints/heartbeat.py": ("json.dumps(asdict(heartbeat))", "json.dumps({{**asdict(heartbeat), {added}}})"),
    "core/contract.py": ('{"kind": self.kind, ', "{{{added}, 'kind': self.kind, "),
    "core/plain.py": ("return {\n            name: to_plain", "return {{{added}}} | {{\n            name: to_plain"),
}
"""For each file, a text in it and what a later version has instead: the entries of the log and the records in them,
heartbeats, notices, and the stored state and the records of a job."""


def make(folder: Path) -> Path:
    """Write the package into this new folder, and return it for PYTHONPATH."""
    shutil.copytree(PACKAGE, folder / "spotladder", ignore=shutil.ignore_patterns("__pycache__"))
    for name, (before, after) in PATCHES.items():
        file = folder / "spotladder" / name
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{name}: expected once: {before}"
        changed = text.replace(before, after.format(added=f"'{FIELD}': {{'seconds': 1.5}}"))
        file.write_text(changed, encoding="utf-8")
    about = folder / f"spotladder-{VERSION}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: spotladder\nVersion: {VERSION}\n")
    (about / "entry_points.txt").write_text(distribution("spotladder").read_text("entry_points.txt") or "")
    return folder


def environment(folder: Path) -> Mapping[str, str]:
    """The variables of a process of the later version in this folder."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}
