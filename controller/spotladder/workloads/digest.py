"""Digests show whether an object, or the pods of a tier, would have the same content again."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

_LENGTH = 16


def digest(content: Any) -> str:
    """The digest of this content, which can be JSON. The order of keys does not matter."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:_LENGTH]
