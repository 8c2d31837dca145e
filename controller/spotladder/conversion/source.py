"""What a conversion starts from: the documents of the user's files, and the options of the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spotladder.api.document import Document
from spotladder.api.problems import Path, dotted
from spotladder.errors import InvalidSpec


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a conversion. `tiers` are names of CapacityTiers in order of use, () for the default ones;
    `checkpoints` is the address of the commit log, "" for a placeholder; `entrypoint` is the command of a RayCluster.
    """

    tiers: tuple[str, ...] = ()
    checkpoints: str = ""
    entrypoint: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One object of a file. `at` is its path in the document: () unless it is an item of a List."""

    document: Document
    data: Mapping[str, Any]
    at: Path = ()

    @property
    def kind(self) -> str:
        """The kind, with `SkyPilot task` for a task file, which has none; "" if unknown."""
        kind = self.data.get("kind")
        if isinstance(kind, str):
            return kind
        return "SkyPilot task" if "apiVersion" not in self.data and not _TASK.isdisjoint(self.data) else ""

    @property
    def group(self) -> str:
        """The API group; "" without one."""
        return str(self.data.get("apiVersion") or "").rpartition("/")[0]

    @property
    def name(self) -> str:
        """The object's name; "" without one."""
        metadata = self.data.get("metadata")
        given = metadata if isinstance(metadata, Mapping) else self.data
        return str(given.get("name") or given.get("generateName") or "")

    def where(self, *path: str | int) -> str:
        """`file:line:column` of a field."""
        return self.document.where((*self.at, *path))

    def refused(self, message: str, *path: str | int) -> InvalidSpec:
        """The error of a field that cannot be converted."""
        return InvalidSpec(message, path=dotted(path), where=self.where(*path))


_TASK = {"run", "setup", "num_nodes"}
"""Fields of which a task of SkyPilot has at least one."""


def found(sources: Sequence[Source], kind: str, name: str) -> Source | None:
    """The object of this kind and name."""
    return next((one for one in sources if one.kind == kind and one.name == name), None)
