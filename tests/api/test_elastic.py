"""`spec.elastic`: its defaults, its sizes, and the messages for values with which it cannot work."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.api.check import checked
from spotladder.api.document import documents_of
from spotladder.api.local_mode import small_pools
from spotladder.api.resolve import sizes
from spotladder.api.tieredjob import TieredJob
from spotladder.api.world import World
from tests.api.builders import JOB, WORLD, changed, said_about

REPLICAS = "replicas: 2", "replicas: 8"


def job(elastic: str) -> TieredJob:
    text = changed(JOB, REPLICAS, ("  suspend: false", f"  elastic: {elastic}"))
    return checked(documents_of(text, "job.yaml")[0], TieredJob)


@pytest.mark.parametrize(
    ("elastic", "allowed"),
    [
        ("{min: 6}", (6, 7, 8)),
        ("{min: 8}", (8,)),
        ("{min: 4, sizes: [4, 6, 8]}", (4, 6, 8)),
        ("{min: 4, sizes: [8, 4, 8]}", (4, 8)),
    ],
)
def test_the_allowed_numbers_of_workers(elastic: str, allowed: tuple[int, ...]) -> None:
    assert sizes(job(elastic)) == allowed


def test_a_job_that_is_not_elastic_has_no_sizes() -> None:
    assert sizes(checked(documents_of(JOB, "job.yaml")[0], TieredJob)) == ()


def test_a_program_with_checkpoints_of_its_own_is_not_elastic() -> None:
    text = changed(
        JOB, ("interval: 5m", "interval: 5m\n    programFolder: out"), ("suspend: false", "elastic: {min: 1}")
    )
    (said,) = said_about(text)
    assert "spec.checkpoints.programFolder: cannot be used by an elastic job" in said


def test_a_group_with_an_empty_field_is_elastic() -> None:
    text = changed(
        JOB, ("replicas: 2", "replicas: 8\n              numOfHosts:"), ("  suspend: false", "  elastic: {min: 6}")
    )
    assert sizes(checked(documents_of(text, "job.yaml")[0], TieredJob)) == (6, 7, 8)


def test_a_jobset_cannot_be_elastic() -> None:
    at = JOB.index("    ray:")
    text = JOB[:at].replace("  suspend: false", "  elastic: {min: 1}") + JOBSET
    (said,) = said_about(text)
    assert said == (
        "job.yaml:21:3: spec.elastic: needs workload.ray, because Ray Train changes the number of workers: "
        "remove elastic"
    )


JOBSET = """\
    jobSet:
      template:
        spec:
          replicatedJobs:
          - name: workers
            replicas: 1
            template: {spec: {parallelism: 2, template: {spec: {containers: [{name: main, image: train}]}}}}
"""


def test_a_pool_needs_nodes_for_the_smallest_size_only() -> None:
    pools: dict[str, Any] = checked(documents_of(WORLD, "world.yaml")[0], World).pools
    assert small_pools(job("{min: 2}"), pools) == []
    assert [problem.path for problem in small_pools(job("{min: 3}"), pools)] == [
        "spec.tiers[0].capacityTier",
        "spec.tiers[1].capacityTier",
    ]
