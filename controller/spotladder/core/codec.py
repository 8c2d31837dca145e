"""`JobState` as JSON, and back: what the local runner keeps in a file and the operator in the object's status.

Unknown fields are refused and missing ones get their defaults, so a state written by an older version is read and one
written by a newer version is not half-understood.
"""

from __future__ import annotations

import base64
import json
import typing
import zlib

from spotladder.core.model import JobState
from spotladder.core.plain import from_plain, to_plain
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
