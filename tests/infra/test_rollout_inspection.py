"""The reports of installed components, and of a cluster's failure."""

from __future__ import annotations

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout import inspection


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("kubectl get: refused", "cluster east: kubectl get: refused"),
        ("cluster east: it is locked", "cluster east: it is locked"),
        ("cluster east has no good rollout yet", "cluster east has no good rollout yet"),
        ("cluster east-2: it is locked", "cluster east: cluster east-2: it is locked"),
    ],
)
def test_a_failure_names_its_cluster_once(message: str, line: str) -> None:
    assert inspection.failure_of("east", message) == line


def test_clusters_are_inspected_although_one_cannot_be_read() -> None:
    def rows(name: str) -> list[str]:
        if name == "west":
            raise EnvironmentFailure("no answer")
        return [f"{name} 1", f"{name} 2"]

    found = inspection.inspect_all(["east", "west", "north"], 2, rows)
    assert found == (["east 1", "east 2", "north 1", "north 2"], ["cluster west: no answer"])
