"""Simulates a request against a policy of IAM. The policies of roles here have no Deny."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any


def allowed(policy: Mapping[str, Any], action: str, resource: str, context: Mapping[str, str]) -> bool:
    """Whether a statement of the policy allows the request with these condition keys."""
    return any(
        statement["Effect"] == "Allow"
        and any(fnmatchcase(action, pattern) for pattern in statement["Action"])
        and any(fnmatchcase(resource, pattern) for pattern in statement["Resource"])
        and all(_holds(operator, wanted, context) for operator, wanted in statement.get("Condition", {}).items())
        for statement in policy["Statement"]
    )


def _holds(operator: str, wanted: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    plain = operator.removeprefix("ForAnyValue:").removeprefix("ForAllValues:")
    for key, values in wanted.items():
        accepted = values if isinstance(values, list) else [values]
        given = context.get(key)
        if given is None:
            if plain.endswith("IfExists") or operator.startswith("ForAllValues:"):
                continue
            return False
        matches = fnmatchcase if plain.startswith("StringLike") else str.__eq__
        if not any(matches(given, value) for value in accepted):
            return False
    return True
