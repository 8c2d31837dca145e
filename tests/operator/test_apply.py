from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.clusters.clock import SteppedClock
from spotladder.clusters.registry import HOME
from spotladder.core.model import Launch
from spotladder.operator.apply import Applier
from spotladder.operator.cache import Scoped
from spotladder.operator.clusters import Cluster, Clusters, Found
from spotladder.operator.copies import Copies
from spotladder.operator.preflight import Preflight
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

    async def metadata(self, *_: object) -> Any:
        return {}


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
        found=Found({}, ()),
    )
    clock = SteppedClock()
    home = Cluster(HOME, cast("Any", client), inventory, most=1)
    clusters = Clusters(home, {}, join=cast("Any", None), clock=clock, changed=lambda _name: None)
    preflight = Preflight(clusters, clock=clock, changed=lambda _key: None)
    copies = Copies(clusters, Scoped([]), namespaces=(), clock=clock)
    applier = Applier(clusters, preflight=preflight, copies=copies, environment={})
    for _ in range(2):
        assert await applier.launch(loaded, Launch(1, "spot-a")) is None
    half = len(client.made) // 2
    assert client.made[:half] == client.made[half:]
    assert client.made[-1]["metadata"]["annotations"][names.DIGEST]
    assert made == before
