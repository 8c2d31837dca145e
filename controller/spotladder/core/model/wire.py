"""How a field is named in stored data, if that differs from its name in the code."""

from __future__ import annotations

WIRE_NAME = "wire_name"
"""Key of a dataclass field's metadata: the field's name in stored states and timelines."""
