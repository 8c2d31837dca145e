"""The stacks of a changed fleet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spotladder_infra.stacks.synth import synth
from spotladder_infra.topology.fleet import Fleet


def synthesized(fleet: Fleet, folder: Path, *clusters: str) -> list[dict[str, Any]]:
    """The configurations of the stacks of these clusters, as Terraform reads them."""
    chosen = [fleet.cluster(name) for name in clusters]
    written = synth(fleet, chosen, folder / "out", folder / "state")
    return [json.loads((path / "cdk.tf.json").read_text()) for path in written]
