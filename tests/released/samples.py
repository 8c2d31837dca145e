"""A value for every field of a record, other than its default."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


def sample(kind: Any, name: str = "x") -> Any:
    """A value of this type for the field `name`."""
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return sample(next(one for one in of if one is not type(None)), name)
    if origin is typing.Literal:
        return of[0]
    if origin in (tuple, frozenset):
        return origin(sample(one, name) for one in of if one is not Ellipsis)
    if origin is Mapping:
        return {sample(of[0], name): sample(of[1], name)} if of[1] is not Any else {}
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        made = {one.name: sample(hints[one.name], one.name) for one in fields(kind) if one.name not in NEWER}
        return typing.cast("type", kind)(**made)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return list(kind)[-1] if "UNKNOWN" not in kind.__members__ else next(iter(kind))
    return {bool: True, int: len(name), float: len(name) + 0.5, str: name}[kind]


NEWER = frozenset({"newer", "more"})
"""The fields for what a newer version has written."""
