"""Synthesized Terraform in a form that can be reviewed: policies as objects, no metadata, sorted. `python -m
tests.infra.golden` regenerates the golden files.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from spotladder_infra.stacks.synth import synth
from tests.topology.builders import fleet_file

HERE = Path(__file__).parent / "golden"


def normalised(stack: dict[str, Any]) -> str:
    """The stack's configuration as text."""
    found = _plain(stack)
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items() if key != "//"}
    if isinstance(node, list):
        return [_plain(entry) for entry in node]
    if isinstance(node, str) and node.startswith("{"):
        return {"jsonencode": json.loads(node)}
    return node


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        fleet = fleet_file(place).fleet
        for stack in synth(fleet, fleet.spec.clusters, place / "out", place / "state"):
            (HERE / f"{stack.name}.json").write_text(normalised(json.loads((stack / "cdk.tf.json").read_text())))


if __name__ == "__main__":
    main()
