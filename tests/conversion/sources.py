"""The manifests of the tests: small files in the shapes that public repositories have."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from spotladder.api.document import documents_of
from spotladder.conversion.draft import Draft
from spotladder.conversion.reading import kubectl_meaning, read_sources
from spotladder.conversion.registry import Converted, convert
from spotladder.conversion.source import Options, Source

FOLDER = Path(__file__).parent / "manifests"
MANIFESTS = sorted(path.stem for path in FOLDER.glob("*.yaml"))

ENTRYPOINTS = {"raycluster": "python dune.py"}
"""The option --entrypoint of the manifests that need it."""


def converted(name: str, *tiers: str, checkpoints: str = "") -> Converted:
    """The result of `spotladder convert` for a manifest, which a test may change."""
    return deepcopy(_converted(name, Options(tiers, checkpoints, ENTRYPOINTS.get(name, ""))))


@cache
def sources_of(name: str) -> list[Source]:
    """The objects of a manifest, which a test must not change."""
    return read_sources([FOLDER / f"{name}.yaml"])


@cache
def _converted(name: str, options: Options) -> Converted:
    return convert(read_sources([FOLDER / f"{name}.yaml"]), options)


def draft(name: str, *tiers: str, checkpoints: str = "") -> Draft:
    """The one job of a manifest."""
    (made,) = converted(name, *tiers, checkpoints=checkpoints).drafts
    return made


def draft_of(text: str, **options: Any) -> Draft:
    """The one job of a text."""
    sources = [Source(document, document.data) for document in documents_of(text, "given.yaml", kubectl_meaning)]
    (made,) = convert(sources, Options(**options)).drafts
    return made


def comments(made: Draft) -> str:
    """All comments of a job."""
    return "\n".join([*made.heading, *(note.text for note in made.notes)])
