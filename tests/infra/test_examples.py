"""The example fleets can be synthesized with the commands of the pages about the first cluster."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from spotladder_infra.stacks.synth import synth
from spotladder_infra.topology.read import read_fleet
from tests.absent import absent
from tests.infra.conftest import SUITE
from tests.topology.builders import TODAY

EXAMPLES = Path(__file__).parents[2] / "examples" / "fleet"


@pytest.mark.parametrize(
    ("example", "cluster", "backend"),
    [
        ("gke", "central", {"gcs": {"bucket": "acme-terraform-state", "prefix": "spotladder/first/central"}}),
        ("fleet", "central", None),
    ],
)
def test_an_example_becomes_a_stack(example: str, cluster: str, backend: Any, tmp_path: Path) -> None:
    if find_spec("cdktn_provider_google") is None:
        absent("cdktn_provider_google is not installed (make setup-infra)", SUITE)
    found = read_fleet(EXAMPLES / f"{example}.yaml", TODAY)
    assert found.warnings == ()
    (folder,) = synth(found.fleet, [found.fleet.cluster(cluster)], tmp_path / "out", tmp_path / "state")
    stack = json.loads((folder / "cdk.tf.json").read_text())
    assert stack["resource"]["google_container_cluster"]["cluster"]["name"] == cluster
    assert backend is None or stack["terraform"]["backend"] == backend
