"""Converts frozen dataclasses to JSON values and back according to the types of their fields.

A job's state is read strictly: completely or not at all. A historical record is read leniently: fields of a newer
version are ignored.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from typing import Any


def to_plain(value: Any, *, full: bool = False) -> Any:
    """Dataclasses and mappings as dicts, tuples and sets as lists, enums as their values.

    Omits fields with their default value, which keeps statuses small. With `full` it includes them, and writes NaN and
    the infinities, which JSON lacks, as strings.
    """
    kind = type(value)
    if kind is float and full and not math.isfinite(value):
        return str(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is tuple or kind is list:
        return [to_plain(item, full=full) for item in value]
    if kind is frozenset:
        return sorted(to_plain(item, full=full) for item in value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(kind):
        return {
            name: to_plain(item, full=full)
            for name, default in _fields(kind)
            if (item := getattr(value, name)) != default or default is MISSING or full
        }
    if isinstance(value, Mapping):
        return {str(key): to_plain(item, full=full) for key, item in value.items()}
    return value


_AS_THEY_ARE = frozenset({bool, int, float, str, types.NoneType})


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    """The name and the default of each field."""
    return tuple((spec.name, spec.default) for spec in fields(kind))


def from_plain(kind: Any, plain: Any, *, lenient: bool = False) -> Any:
    """The inverse of `to_plain`. Missing fields take their defaults.

    Unknown fields are an error. With `lenient` they are ignored, and values that `full` has written can be read.
    Raises ValueError, TypeError, KeyError or AttributeError if `plain` is not a value of that type.
    """
    return _reader(kind, lenient)(plain)


@cache
def _reader(kind: Any, lenient: bool) -> Callable[[Any], Any]:
    """The function that reads values of a type, cached because resolving types takes most of the time."""
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        (option,) = [option for option in typing.get_args(kind) if option is not type(None)]
        read = _reader(option, lenient)
        return lambda plain: None if plain is None else read(plain)
    if origin is tuple and typing.get_args(kind)[-1] is not Ellipsis:
        reads = [_reader(item, lenient) for item in typing.get_args(kind)]
        return lambda plain: tuple(read(item) for read, item in zip(reads, plain, strict=True))
    if origin in (tuple, frozenset):
        read = _reader(typing.get_args(kind)[0], lenient)
        return lambda plain: origin(map(read, plain))
    if origin is Mapping:
        read = _reader(typing.get_args(kind)[1], lenient)
        return lambda plain: {key: read(item) for key, item in plain.items()}
    if is_dataclass(kind):
        return _record_reader(typing.cast("type", kind), lenient)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind is float and lenient:
        return float
    return partial(_scalar, kind)


def _scalar(kind: type, plain: Any) -> Any:
    if kind is float and isinstance(plain, int):
        return float(plain)
    if not isinstance(plain, kind):
        raise TypeError(f"expected {kind.__name__}, found {plain!r}")
    return plain


def _record_reader(kind: type, lenient: bool) -> Callable[[Any], Any]:
    hints = typing.get_type_hints(kind)
    readers = {name: _reader(hints[name], lenient) for name, _ in _fields(kind)}

    def record(plain: Any) -> Any:
        unknown = plain.keys() - readers.keys()
        if unknown and not lenient:
            raise ValueError(f"unknown fields {', '.join(sorted(unknown))}")
        return kind(**{name: readers[name](plain[name]) for name in plain.keys() - unknown})

    return record
