"""The JSON schema of a fleet file, for editors and for checks outside of this program."""

from __future__ import annotations

from typing import Any

from spotladder.api.editor_schema import DRAFT, allow_numbers
from spotladder_infra.topology.fleet import Fleet


def schema() -> dict[str, Any]:
    """JSON schema draft 2020-12."""
    found = {"$schema": DRAFT, **Fleet.model_json_schema()}
    allow_numbers(found)
    return found
