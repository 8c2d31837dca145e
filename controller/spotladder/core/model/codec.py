"""Converts `JobState` to JSON and back. The local runner stores it in a file, the operator in the object's status.

Fields with their default value are not written. Fields that only a newer version knows are kept and written again, so
that a job survives a rollback of its controller.
"""

from __future__ import annotations

import base64
import json
import typing
import zlib
from dataclasses import replace

from spotladder.core.model import JobState
from spotladder.core.plain import from_plain, to_plain, unknown_fields, with_unknown_fields
from spotladder.core.reasons import Reason
from spotladder.errors import InvalidSpec

VERSION = 1
"""Version of the format. Only a change that an older reader would misread raises it, such as a new stage: then a job
that the newer version has reconciled cannot go back."""

_PACKED = "zlib:"
"""Prefix of a state that `pack` wrote; no JSON begins with it."""

LARGEST = 4 * 1024 * 1024
"""Maximum size in bytes of an unpacked state: more than a Kubernetes object can have."""


def dump(state: JobState) -> str:
    """The state as one line of JSON."""
    plain = {"version": VERSION, **to_plain(state)}
    if newer := plain.pop("newer", ""):
        with_unknown_fields(plain, json.loads(newer))
    return json.dumps(plain, separators=(",", ":"), allow_nan=False)


def pack(state: JobState) -> str:
    """The state as `dump` returns it, compressed: users see it in `kubectl describe` but do not read it."""
    return _PACKED + base64.b64encode(zlib.compress(dump(state).encode(), 9)).decode()


def load_state(text: str) -> JobState:
    """Read a state that `dump` or `pack` wrote.

    Raises:
        InvalidSpec: not a state, or one of a newer version.
    """
    if text.startswith(_PACKED):
        text = _unpacked(text.removeprefix(_PACKED))
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSpec(f"the saved state is not JSON ({error}); it is truncated or another file") from error
    if not isinstance(plain, dict) or not isinstance(version := plain.pop("version", None), int):
        raise InvalidSpec("the saved state has no version; it is another file")
    if version > VERSION:
        raise InvalidSpec(
            f"the saved state is of version {version}, this program reads up to {VERSION}; use the newer one"
        )
    try:
        plain.pop("newer", None)
        # Each decision finds the impediment again.
        if (plain.get("impeded") or {}).get("reason") not in set(Reason):
            plain.pop("impeded", None)
        state = typing.cast("JobState", from_plain(JobState, plain))
        unknown = unknown_fields(JobState, plain)
        return replace(state, newer=json.dumps(unknown)) if unknown else state
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidSpec(f"the saved state cannot be read: {error}") from error


def _unpacked(text: str) -> str:
    try:
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(base64.b64decode(text, validate=True), LARGEST)
    except (ValueError, zlib.error) as error:
        raise InvalidSpec(f"the saved state cannot be unpacked ({error}); it is truncated or modified") from error
    if len(plain) == LARGEST and not unpacking.eof:
        more = f"it has more than {LARGEST:,} bytes (no setting raises this limit)"
        raise InvalidSpec(f"the saved state cannot be unpacked: {more}; it is modified")
    if not unpacking.eof:
        raise InvalidSpec("the saved state cannot be unpacked; it is truncated or modified")
    return plain.decode(errors="replace")
