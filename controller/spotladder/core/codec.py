"""`JobState` as JSON, and back: what the local runner keeps in a file and the operator in the object's status.

Unknown fields are refused and missing ones get their defaults, so a state written by an older version is read and one
written by a newer version is not half-understood.
"""

from __future__ import annotations

import base64
import json
import types
import typing
import zlib
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from spotladder.core.model import WIRE_NAME, JobState
from spotladder.errors import InvalidSpec

VERSION = 1
"""Raised when an older reader would misunderstand what a newer writer wrote."""

_PACKED = "zlib:"
"""Begins a state that `pack` wrote. JSON begins otherwise."""

LARGEST = 4 * 1024 * 1024
"""Bytes that a packed state may have when it is unpacked: more than an object of Kubernetes can hold."""


def dump(state: JobState) -> str:
    """The state as one line of JSON."""
    return json.dumps({"version": VERSION, **to_plain(state)}, separators=(",", ":"), allow_nan=False)


def pack(state: JobState) -> str:
    """The state as `dump` has it, compressed: `kubectl describe` prints it, and people do not read it."""
    return _PACKED + base64.b64encode(zlib.compress(dump(state).encode(), 9)).decode()


def load_state(text: str) -> JobState:
    """The state back from `dump` or `pack`, of this version or an older one.

    Raises:
        InvalidSpec: not a state, or one of a newer version.
    """
    if text.startswith(_PACKED):
        text = _unpacked(text.removeprefix(_PACKED))
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise InvalidSpec(f"the saved state is not JSON ({error}); it was cut short or is another file") from error
    if not isinstance(plain, dict) or not isinstance(version := plain.pop("version", None), int):
        raise InvalidSpec("the saved state has no version; it is another file")
    if version > VERSION:
        raise InvalidSpec(
            f"the saved state is of version {version}, this program reads up to {VERSION}; use the newer one"
        )
    try:
        return typing.cast("JobState", from_plain(JobState, plain))
    except (TypeError, ValueError, KeyError) as error:
        raise InvalidSpec(f"the saved state cannot be read: {error}") from error


def _unpacked(text: str) -> str:
    try:
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(base64.b64decode(text, validate=True), LARGEST)
    except (ValueError, zlib.error) as error:
        raise InvalidSpec(f"the saved state cannot be unpacked ({error}); it was cut short or changed") from error
    if not unpacking.eof:
        raise InvalidSpec("the saved state cannot be unpacked; it was cut short or changed")
    return plain.decode(errors="replace")


def to_plain(value: Any) -> Any:
    """Records as dicts and tuples as lists; fields at their default are left out, to keep statuses small."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is tuple:
        return [to_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(kind):
        return {
            wire: to_plain(item)
            for wire, name, default in _fields(kind)
            if (item := getattr(value, name)) != default or default is MISSING
        }
    return value


_AS_THEY_ARE = frozenset({bool, int, float, str, types.NoneType})


@cache
def _fields(kind: type) -> tuple[tuple[str, str, Any], ...]:
    """Of each field: its name as it is written, its name, its default."""
    return tuple((_wire_name(spec), spec.name, spec.default) for spec in fields(kind))


def from_plain(kind: Any, plain: Any) -> Any:
    """The inverse of `to_plain`, guided by the type of the record."""
    return _reader(kind)(plain)


def _wire_name(spec: Field[Any]) -> str:
    return str(spec.metadata.get(WIRE_NAME, spec.name))


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """What reads a value of that type: found once for each type, as most of the time goes into looking at types."""
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        (option,) = [option for option in typing.get_args(kind) if option is not type(None)]
        read = _reader(option)
        return lambda plain: None if plain is None else read(plain)
    if origin is tuple:
        read = _reader(typing.get_args(kind)[0])
        return lambda plain: tuple(map(read, plain))
    if is_dataclass(kind):
        return _record_reader(typing.cast("type", kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind

    def plain_value(plain: Any) -> Any:
        if kind is float and isinstance(plain, int):
            return float(plain)
        if not isinstance(plain, kind):
            raise TypeError(f"expected {kind.__name__}, found {plain!r}")
        return plain

    return plain_value


def _record_reader(kind: type) -> Callable[[Any], Any]:
    hints = typing.get_type_hints(kind)
    readers = {wire: (name, _reader(hints[name])) for wire, name, _ in _fields(kind)}

    def record(plain: Any) -> Any:
        unknown = plain.keys() - readers.keys()
        if unknown:
            raise ValueError(f"unknown fields {', '.join(sorted(unknown))}")
        values = {}
        for wire, item in plain.items():
            name, read = readers[wire]
            values[name] = read(item)
        return kind(**values)

    return record
