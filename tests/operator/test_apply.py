from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.core.model import Launch
from spotladder.operator.apply import Applier
from spotladder.operator.records import JobRecord
from spotladder.workloads import names
from spotladder.workloads.kinds import workload_of
from tests.workloads.builders import job, jobset_template, ray_template, tier


@dataclass
class Client:
    """Takes what it is given."""

    made: list[Any] = field(default_factory=list)

    async def apply(self, _kind: object, body: Any) -> Any:
        self.made.append(deepcopy(body))
        return body


@pytest.mark.parametrize("template", [ray_template(), jobset_template()], ids=["RayJob", "JobSet"])
async def test_the_same_launch_makes_the_same_objects_and_leaves_the_job_as_it_is(template: dict[str, Any]) -> None:
    made = job(template)
    before, client = made.model_copy(deep=True), Client()
    inventory: Any = SimpleNamespace(unreadable=lambda *_: [], written=lambda *_: None)
    loaded: Any = SimpleNamespace(
        record=JobRecord(name="digits", namespace="team-a", uid="1b4e28ba"),
        job=made,
        workload=workload_of(made),
        tiers={"spot-a": tier(made, provider="aws")},
        objects={},
    )
    applier = Applier(client, inventory, environment={})  # type: ignore[arg-type]
    for _ in range(2):
        assert await applier.launch(loaded, Launch(1, "spot-a")) is None
    half = len(client.made) // 2
    assert client.made[:half] == client.made[half:]
    assert client.made[-1]["metadata"]["annotations"][names.DIGEST]
    assert made == before
