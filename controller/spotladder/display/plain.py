"""Records as JSON values and back, led by their declared types.

Lenient where `core.codec` is strict: a state must be understood in full or not at all, a line about the past may have a
field more than we know. And records have what a state has not: mappings, and losses that are no numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """A value as JSON has them. Numbers it lacks (a diverged loss) become strings that `float` reads back."""
    if is_dataclass(value):
        return {each.name: to_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return value


def from_plain(value: Any, kind: type[T]) -> T:
    """The inverse of `to_plain`. Absent fields take their defaults, unknown ones are ignored.

    Raises ValueError, TypeError, KeyError or AttributeError when the value is not of that kind.
    """
    return cast("T", _typed(value, kind))


def _typed(value: Any, kind: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return None if value is None else _typed(value, next(each for each in get_args(kind) if each is not type(None)))
    if origin is tuple:
        return tuple(_typed(item, get_args(kind)[0]) for item in value)
    if origin is not None:  # Mapping[str, X] is the only other generic that records have
        return {key: _typed(item, get_args(kind)[1]) for key, item in value.items()}
    if is_dataclass(kind):
        known = {name: _typed(value[name], hint) for name, hint in _hints(cast("Any", kind)).items() if name in value}
        return cast("Any", kind)(**known)
    return _scalar(value, kind)


def _scalar(value: Any, kind: Any) -> Any:
    if kind is float or issubclass(kind, Enum):
        return kind(value)
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
