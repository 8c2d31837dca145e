"""Why a smoke job has not succeeded, as its status says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from spotladder.api.fields import JobName
from spotladder.errors import EnvironmentFailure
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout import smoke
from spotladder_infra.rollout.tools import Tools
from tests.topology.builders import fleet_file

MISSING = 'spec.tiers[0].capacityTier: CapacityTier "g5-spot" does not exist'
INVALID = {"type": "Valid", "status": "False", "reason": "UnknownCapacityTier", "message": MISSING}


@dataclass(frozen=True)
class HomeCluster(Tools):
    """kubectl of a cluster in which every job has this status."""

    target: KubeContext = field(default_factory=lambda: KubeContext("kubeconfig", "home"))
    status: dict[str, Any] = field(default_factory=dict)

    def get(self, *arguments: str) -> dict[str, Any]:
        return {"metadata": {"name": arguments[1]}, "spec": {}, "status": self.status}

    def kubectl(self, *_: str, given: str | None = None) -> str:
        return ""


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (
            {"phase": "Pending", "conditions": [INVALID]},
            f"is Pending after 0 s: UnknownCapacityTier: {MISSING} (for ",
        ),
        ({"phase": "Pending", "waiting": {"message": "no node"}, "message": "attempt 1"}, "is Pending after 0 s: no n"),
    ],
)
def test_a_job_that_does_not_succeed_says_why(status: dict[str, Any], says: str) -> None:
    job = {"metadata": {"name": "smoke-east"}}
    with pytest.raises(EnvironmentFailure) as failed:
        smoke.run(HomeCluster(status=status), job, 0.0, lambda _: None)
    assert says in str(failed.value)


def test_the_name_is_valid_in_a_cluster_with_a_long_name(tmp_path: Path) -> None:
    """A cluster's name has up to 38 characters on AWS, that of a job 42."""
    east = fleet_file(tmp_path).fleet.cluster("east")
    document = {"metadata": {"name": "smoke"}, "spec": {}}
    names = set()
    for end in "ab":
        made = smoke.job(document, east.model_copy(update={"name": f"{'a' * 37}{end}"}))
        assert made is not None
        assert TypeAdapter(JobName).validate_python(made["metadata"]["name"]).startswith("smoke-aaa")
        names.add(made["metadata"]["name"])
    assert len(names) == 2
