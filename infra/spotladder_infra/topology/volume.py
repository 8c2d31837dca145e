"""Volumes of a cluster: file systems that exist and that the pods of teams mount."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from spotladder.api.fields import Finding, Name, several
from spotladder.api.record import Record


class Volume(Record):
    """A file system of yours. Each of its teams gets a PersistentVolume, and a PersistentVolumeClaim of this name."""

    name: Name = Field(description="The name of the claims.")
    spec: dict[str, Any] = Field(
        description="The spec of the PersistentVolumes: its source, csi or nfs, and if needed mountOptions and "
        "accessModes (default: ReadWriteMany)."
    )
    teams: list[Name] = Field(default_factory=list, description="Teams that mount it. Default: all of the cluster.")

    @model_validator(mode="after")
    def _names_a_file_system(self) -> Volume:
        if not self.spec.keys() & {"csi", "nfs"}:
            raise several([Finding(("spec",), "names no file system: add csi or nfs")])
        return self

    @property
    def driver(self) -> str:
        """The CSI driver of the file system; "" for NFS."""
        source = self.spec.get("csi")
        return str(source.get("driver", "")) if isinstance(source, dict) else ""
