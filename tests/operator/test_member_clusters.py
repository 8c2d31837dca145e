from __future__ import annotations

import pytest

from tests.kube.test_clusters import submit
from tests.kube.world import eventually
from tests.operator.member_cluster import two_clusters_in_memory


async def test_an_attempt_is_not_a_stray_of_itself_in_a_cluster_with_two_names(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        two_clusters_in_memory(monkeypatch) as (kube, east),
        kube.operator(sources={"old-name": east.source, "east": east.source}),
    ):
        await submit(kube)
        await east.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        await kube.program_starts(1)
        await kube.pass_time(30)
        assert await east.rayjobs() == ["digits-a001"]
        assert await kube.is_on("spot-east", 1)
        await east.report(1, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
        await eventually(lambda: kube.has_phase("Succeeded"))
