"""A TieredJob while it is made: its fields, and the comments that stand at them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from spotladder.api.problems import Path, printable

_LONGEST_VALUE = 1000
_SECRET = ("secret", "token", "password", "credential", "apikey", "api_key")


@dataclass(frozen=True, slots=True)
class Note:
    """A comment before the field `at`. `following` are, for each part of the path of a removed field, the keys that
    followed it in its mapping."""

    at: Path
    text: str
    following: tuple[tuple[str, ...], ...] = ()


@dataclass(slots=True)
class Draft:
    """A TieredJob with its comments. `heading` are comments about the whole job."""

    job: dict[str, Any]
    notes: list[Note] = field(default_factory=list)
    heading: list[str] = field(default_factory=list)
    removed: int = 0

    def get(self, *at: str | int) -> Any:
        """The value of a field; None if it does not exist."""
        value: Any = self.job
        for part in at:
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def note(self, at: Path, text: str) -> None:
        """Write a comment before this field."""
        self.notes.append(Note(at, text))

    def remove(self, at: Path, why: str) -> Any:
        """Remove a field, and the mappings and lists that are empty without it. The comment has the value and the
        reason, which follows the word "it". Returns the value; None if there is no such field."""
        gone = self.get(*at)
        if gone is None:
            parent = self.get(*at[:-1])
            if isinstance(parent, dict):
                parent.pop(at[-1], None)  # A null is an absent field.
            return None
        whole = at
        while len(whole) > 1 and len(self.get(*whole[:-1])) == 1:
            whole = whole[:-1]
        inside = [part for part in at[len(whole) - 1 :] if isinstance(part, str)]
        name = ".".join(inside) or str(next(part for part in reversed(at) if isinstance(part, str)))
        following = tuple(self._after(whole[:depth], part) for depth, part in enumerate(whole))
        del self.get(*whole[:-1])[whole[-1]]
        self.notes.append(Note(whole, f"Removed {name}: {plain(gone)}. It {why}.", following))
        self.removed += 1
        return gone

    def _after(self, at: Path, key: str | int) -> tuple[str, ...]:
        keys = list(mapping) if isinstance(mapping := self.get(*at), dict) else []
        return tuple(keys[keys.index(key) + 1 :]) if key in keys else ()

    def dropped(self, text: str) -> None:
        """Report a field of the source that has no place in the result, at the head of the file."""
        self.heading.append(text)
        self.removed += 1


def plain(value: Any) -> str:
    """A value on one line, for a comment: shortened, without credentials."""
    text = json.dumps(_without_secrets(value), ensure_ascii=False, default=str)
    text = text[1:-1] if isinstance(value, str) else text
    return printable(text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…")


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        hidden = any(word in str(value.get("name", "")).lower() for word in _SECRET)
        return {
            key: "…"
            if (hidden and key == "value")
            or (any(word in str(key).lower() for word in _SECRET) and isinstance(inner, str))
            else _without_secrets(inner)
            for key, inner in value.items()
        }
    return [_without_secrets(one) for one in value] if isinstance(value, list) else value
