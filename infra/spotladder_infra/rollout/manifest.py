"""Splits Helm's output into objects, as text: parsing KubeRay's CRDs of several megabytes takes seconds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_SEPARATOR = re.compile(r"^---[ \t]*(?:#.*)?$", re.MULTILINE)
_KIND = re.compile(r"^kind: *[\"']?(\w+)", re.MULTILINE)
_METADATA = re.compile(r"^metadata:.*(?:\n[ \t].*)*", re.MULTILINE)
_NAMESPACE = re.compile(r"(?:^  |[{,] *)[\"']?namespace[\"']?:", re.MULTILINE)


def split(manifest: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each object."""
    for text in _SEPARATOR.split(manifest):
        found = _KIND.search(text)
        if found:
            yield found.group(1), text.strip()


def of_kinds(manifest: str, kinds: Iterable[str]) -> list[str]:
    """The texts of the objects of these kinds."""
    wanted = frozenset(kinds)
    return [text for kind, text in split(manifest) if kind in wanted]


def by_namespace(rendered: str) -> tuple[list[str], list[str]]:
    """The texts of the objects that name a namespace, and of those that do not."""
    found: tuple[list[str], list[str]] = ([], [])
    for _, text in split(rendered):
        metadata = _METADATA.search(text)
        found[0 if metadata and _NAMESPACE.search(metadata.group(0)) else 1].append(text)
    return found


def joined(texts: Iterable[str]) -> str:
    """Objects as one manifest."""
    return "\n---\n".join(texts)
