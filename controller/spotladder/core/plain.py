"""Converts frozen dataclasses to JSON values and back according to the types of their fields.

Fields and reasons of a newer version do not prevent the reading. `unknown_fields` finds the fields, and
`with_unknown_fields` puts them back, so that an older version that writes a value again keeps them.
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


def from_plain(kind: Any, plain: Any) -> Any:
    """The inverse of `to_plain`, with or without `full`. Missing fields take their defaults, unknown ones are ignored.

    An unknown value of an enum is its member UNKNOWN, if it has one. Raises ValueError, TypeError, KeyError or
    AttributeError if `plain` is not a value of that type.
    """
    return _reader(kind)(plain)


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """The function that reads values of a type, cached because resolving types takes most of the time."""
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        (option,) = [option for option in typing.get_args(kind) if option is not type(None)]
        read = _reader(option)
        return lambda plain: None if plain is None else read(plain)
    if origin is tuple and typing.get_args(kind)[-1] is not Ellipsis:
        reads = [_reader(item) for item in typing.get_args(kind)]
        return lambda plain: tuple(read(item) for read, item in zip(reads, plain, strict=True))
    if origin in (tuple, frozenset):
        read = _reader(typing.get_args(kind)[0])
        return lambda plain: origin(map(read, plain))
    if origin is Mapping:
        read = _reader(typing.get_args(kind)[1])
        return lambda plain: {key: read(item) for key, item in plain.items()}
    if is_dataclass(kind):
        return _record_reader(typing.cast("type", kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_reader(kind)
    return partial(_scalar, kind)


def _enum_reader(kind: type[Enum]) -> Callable[[Any], Any]:
    known: dict[Any, Enum] = {member.value: member for member in kind}
    other = kind.__members__.get("UNKNOWN")
    if other is None:
        return kind
    return lambda plain: known.get(plain, other) if isinstance(plain, str) else kind(plain)


def _scalar(kind: type, plain: Any) -> Any:
    if kind is float and (type(plain) is int or plain in ("nan", "inf", "-inf")):
        try:
            return float(plain)
        except OverflowError as error:
            raise ValueError(str(error)) from None
    if not isinstance(plain, kind):
        raise TypeError(f"expected {kind.__name__}, found {plain!r}")
    return plain


def _record_reader(kind: type) -> Callable[[Any], Any]:
    hints = typing.get_type_hints(kind)
    readers = {name: _reader(hints[name]) for name, _ in _fields(kind)}

    def record(plain: Any) -> Any:
        return kind(**{name: readers[name](plain[name]) for name in plain.keys() & readers.keys()})

    return record


# --- fields of a newer version ----------------------------------------------------------------------------------------

_NAMES = ("number", "name", "node")
"""The fields that distinguish a record from the others of a list, and from an earlier one in the same place."""


def unknown_fields(kind: Any, plain: Any) -> list[list[Any]]:
    """The fields that `from_plain` ignores: for each its place and its value.

    The last item of a place is the name of the field, each item before it the field of a record and that record's name
    or number. The fields of records in a list without a name or a number are left out.
    """
    names, inner = _shape(kind)
    found = [[[name], plain[name]] for name in plain if name not in names]
    for name, record_kind in inner.items():
        held = plain.get(name)
        for record in held if isinstance(held, list) else (held,):
            if isinstance(record, dict) and ((named := _named(record)) is not None or record is held):
                found += [[[[name, named], *place], value] for place, value in unknown_fields(record_kind, record)]
    return found


def with_unknown_fields(plain: dict[str, Any], unknown: list[list[Any]]) -> None:
    """Put these fields into the records that they belong to, as far as those still exist."""
    for (*parents, last), value in unknown:
        place: Any = plain
        for name, named in parents:
            inner = place.setdefault(name, {}) if named is None else place.get(name)
            among = inner if isinstance(inner, list) else [inner]
            place = next((one for one in among if isinstance(one, dict) and _named(one) == named), None)
            if place is None:
                break
        else:
            place.setdefault(last, value)


def _named(record: Mapping[str, Any]) -> Any:
    return next((record[name] for name in _NAMES if name in record), None)


@cache
def _shape(kind: type) -> tuple[frozenset[str], dict[str, Any]]:
    """The names of the fields of a record, and the classes of those that have records."""
    hints = typing.get_type_hints(kind)
    found = {name: next(filter(is_dataclass, (hint, *typing.get_args(hint))), None) for name, hint in hints.items()}
    return frozenset(hints), {name: record for name, record in found.items() if record is not None}
