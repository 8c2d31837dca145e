"""Synthesized Terraform in a form that can be reviewed: sorted, without metadata. Of the resources of a type, all but
the first are written as differences from it; `alpha` has only the resources that `west` lacks. Policies of roles are
left out: test_policies.py simulates them.
"""

from __future__ import annotations

import json
from typing import Any

from tests.topology.differences import differences, lines

Stack = dict[str, Any]


def golden(stacks: dict[str, Stack]) -> dict[str, str]:
    """The texts of the golden files by cluster, from the configurations of `east`, `west` and `alpha`."""
    found = {name: _plain(stack) for name, stack in stacks.items()}
    west, alpha = found["west"]["resource"], found["alpha"]["resource"]
    found["alpha"] = {
        "resource": {
            kind: {name: body for name, body in named.items() if name not in west.get(kind, {})}
            for kind, named in alpha.items()
            if set(named) - set(west.get(kind, {}))
        }
    }
    return {name: lines(_sorted(_compact(stack))) for name, stack in found.items()}


def _compact(stack: Stack) -> Stack:
    resources = {}
    for kind, named in stack["resource"].items():
        first, *others = sorted(named)
        base = named[first]
        resources[kind] = {first: base, **{name: differences(base, named[name]) for name in others}}
        if kind == "aws_iam_role_policy":
            resources[kind] = dict.fromkeys(sorted(named), "see test_policies.py")
    return {**stack, "resource": resources}


def _sorted(node: Any) -> Any:
    return json.loads(json.dumps(node, sort_keys=True))


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items() if key != "//"}
    if isinstance(node, list):
        return [_plain(entry) for entry in node]
    if isinstance(node, str) and node.startswith("{"):
        return {"jsonencode": json.loads(node)}
    return node
