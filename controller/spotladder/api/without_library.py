"""Finds programs beside a job's file that do not use `spotladder.train`: they begin from the start after each loss."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path as File

from spotladder.api.document import LARGEST_FILE
from spotladder.api.files import open_regular
from spotladder.api.problems import Path, quoted
from spotladder.api.ray_workload import RayWorkload
from spotladder.api.tieredjob import TieredJob

_ENTRYPOINT: Path = ("spec", "workload", "ray", "template", "spec", "entrypoint")
_LONGEST = 4096
_MOST_FILES = 100
"""Python files that are read to find the name of the library."""


def without_library(job: TieredJob, folder: File) -> Iterator[tuple[Path, str]]:
    """The place of the entrypoint, and what to expect, if its script is in the folder and neither the script nor the
    Python files around it name the library. A script that is only in the image is not judged."""
    ray = job.spec.workload.of(RayWorkload)
    entrypoint = ray.template.spec.get("entrypoint") if ray is not None else None
    if not isinstance(entrypoint, str) or len(entrypoint) > _LONGEST:
        return
    scripts = (folder / word for word in entrypoint.split() if word.endswith(".py"))
    try:
        script = next((file for file in scripts if file.is_file()), None)
        if script is None or any(map(_names_library, _sources(script))):
            return
    except OSError:
        return  # An unreadable file proves nothing.
    message = (
        f"{quoted(script.name)} does not use spotladder.train, so the program begins from the start after each loss, "
        "and stallTimeout does not apply to it (docs/training-script.md)"
    )
    yield _ENTRYPOINT, message


def _sources(script: File) -> Iterator[File]:
    around = chain(script.parent.glob("*.py"), script.parent.glob("*/*.py"))
    return chain([script], islice(around, _MOST_FILES))


def _names_library(file: File) -> bool:
    with open_regular(file) as stream:
        return b"spotladder" in stream.read(LARGEST_FILE)
