"""`spec.source`: the files of the program, as an archive that every pod of the job unpacks before its program."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from spotladder.api.checkpoint_fields import checkpoint_uri
from spotladder.api.fields import filled_text, refused
from spotladder.api.record import Record

FOLDER = "source"
"""The folder of the archives, beside the log of the job."""

_NAME = re.compile(r".*/[0-9a-f]{64}\.zip")


def key_of(sha256: str) -> str:
    """The key of an archive in the folder of the job."""
    return f"{FOLDER}/{sha256}.zip"


def _archive(value: Any) -> str:
    uri = checkpoint_uri(value)
    if not _NAME.fullmatch(uri):
        raise refused("must end in the archive's SHA-256 in hexadecimal digits and .zip")
    return uri


def _inside(value: Any) -> str:
    path = filled_text(value)
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        raise refused("must be the path of a file in the archive, like requirements.txt")
    return path


class Source(Record):
    """The files of the program, for images that do not have them."""

    uri: Annotated[
        str, BeforeValidator(_archive), WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"})
    ] = Field(
        description="Address of a zip archive whose name is its SHA-256, read with the credentials of the "
        "checkpoints: s3://, gs://, az:// or file:///."
    )
    pip: Annotated[str, BeforeValidator(_inside), WithJsonSchema({"type": "string", "minLength": 1})] | None = Field(
        default=None,
        description="Requirements file in the archive. Each pod installs the packages that its image does not have.",
    )
