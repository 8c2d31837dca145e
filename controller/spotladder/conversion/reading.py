"""Reads the manifests of other systems, with the meaning that kubectl and Python give to unquoted words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spotladder.api.document import MAX_FILE_SIZE, Document, file_name, read_documents
from spotladder.api.files import open_regular
from spotladder.api.problems import quoted
from spotladder.api.scalars import Scalar, meaning
from spotladder.conversion.source import Source
from spotladder.errors import InvalidSpec
from spotladder.workloads.pods import copied

_TRUE = ("y", "yes", "on")
_FALSE = ("n", "no", "off")


def read_sources(files: Sequence[Path]) -> list[Source]:
    """All objects of the files, also those of Lists.

    Raises:
        InvalidSpec: a file cannot be read, is empty or is not YAML.
    """
    found = []
    for file in files:
        try:
            documents = read_documents(file, kubectl_meaning)
        except InvalidSpec:
            if _is_template(file):
                message = "is a template ({{ … }}), not YAML: convert what helm template prints"
                raise InvalidSpec(message, where=file_name(file)) from None
            raise
        objects = [one for document in documents for one in _objects(document)]
        if not objects:
            raise InvalidSpec("is empty; specify the manifest of a job", where=file_name(file))
        found += objects
    return found


def kubectl_meaning(text: str) -> Scalar:
    """The value of an unquoted scalar as in YAML 1.1: `0644` is octal, `yes` is true."""
    try:
        return meaning(text)
    except ValueError:
        word = text.lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        digits = word.replace("_", "")
        sign, number = (-1 if digits.startswith("-") else 1), digits.lstrip("+-")
        if number.startswith("0") and number.isdigit() and not {"8", "9"} & set(number):
            return sign * int(number, 8)
        return sign * (float(number) if "." in number else int(number))


def _is_template(file: Path) -> bool:
    try:
        with open_regular(file) as stream:
            return b"{{" in stream.read(MAX_FILE_SIZE)
    except (OSError, ValueError):
        return False


def _objects(document: Document) -> Iterator[Source]:
    data = document.data
    if not isinstance(data, dict):
        raise InvalidSpec(
            f"must be a mapping, not {quoted(data)}: specify the manifest of a job", where=document.where(())
        )
    items = data.get("items")
    if str(data.get("kind", "")).endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            if isinstance(item, dict):
                yield Source(document, copied(item), ("items", index))
    elif set(data) != {"name"}:  # The first document of a pipeline of SkyPilot has only a name.
        # In Kubernetes a null is an absent field; in a task of SkyPilot it is a variable without a value.
        yield Source(document, copied(data) if "apiVersion" in data else data)
