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
from tests.api.builders import JOB, WORLD, Case, changed, said_about

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


def test_a_job_grows_after_ten_minutes_by_default() -> None:
    elastic = job("{min: 4}").spec.elastic
    assert elastic is not None
    assert elastic.grow_after == 600
    assert sizes(checked(documents_of(JOB, "job.yaml")[0], TieredJob)) == ()


def test_a_program_with_checkpoints_of_its_own_is_not_elastic() -> None:
    text = changed(
        JOB, ("interval: 5m", "interval: 5m\n    programFolder: out"), ("suspend: false", "elastic: {min: 1}")
    )
    (said,) = said_about(text)
    assert "spec.checkpoints.programFolder: cannot be used by an elastic job" in said


CASES = [
    Case(
        "min above the number of workers",
        "  suspend: false",
        "  elastic: {min: 3}",
        "job.yaml:21:18: spec.elastic.min: must be at most the number of workers of the workload, 2, not 3",
    ),
    Case(
        "min of 0",
        "  suspend: false",
        "  elastic: {min: 0}",
        "job.yaml:21:18: spec.elastic.min: must be at least 1, not 0",
    ),
    Case(
        "no min",
        "  suspend: false",
        "  elastic: {sizes: [1, 2]}",
        "job.yaml:21:12: spec.elastic.min: is required: smallest number of workers. With fewer the job waits for "
        "capacity, up to provisionTimeout",
    ),
    Case(
        "a size below min",
        "  suspend: false",
        "  elastic: {min: 2, sizes: [1, 2]}",
        "job.yaml:21:29: spec.elastic.sizes[0]: must be from min to the number of workers of the workload, 2 to 2, "
        "not 1",
    ),
    Case(
        "a size above the number of workers",
        "  suspend: false",
        "  elastic: {min: 1, sizes: [1, 3]}",
        "job.yaml:21:32: spec.elastic.sizes[1]: must be from min to the number of workers of the workload, 1 to 2, "
        "not 3",
    ),
    Case(
        "sizes without the number of workers",
        "  suspend: false",
        "  elastic: {min: 1, sizes: [1]}",
        "job.yaml:21:28: spec.elastic.sizes: must contain min and the number of workers of the workload: add 2",
    ),
    Case(
        "sizes without min",
        "  suspend: false",
        "  elastic: {min: 1, sizes: [2]}",
        "job.yaml:21:28: spec.elastic.sizes: must contain min and the number of workers of the workload: add 1",
    ),
    Case(
        "no sizes",
        "  suspend: false",
        "  elastic: {min: 1, sizes: []}",
        "job.yaml:21:28: spec.elastic.sizes: must have at least one entry",
    ),
    Case(
        "growAfter without unit",
        "  suspend: false",
        "  elastic: {min: 1, growAfter: 10}",
        "job.yaml:21:32: spec.elastic.growAfter: needs a unit: write 10s for seconds (or 10m, 1h30m)",
    ),
    Case(
        "elastic without the fence",
        "handover: Fenced",
        "handover: WhenGone\n  elastic: {min: 1}",
        "job.yaml:18:3: spec.elastic: needs handover: Fenced, because the program commits before its number of workers "
        "changes: remove elastic, or set handover: Fenced if the program uses spotladder.train",
    ),
    Case(
        "several hosts in a worker",
        "              replicas: 2",
        "              replicas: 2\n              numOfHosts: 2\n  elastic: {min: 1}",
        "job.yaml:32:3: spec.elastic: cannot be used with numOfHosts, because the hosts of a group are lost together: "
        "remove elastic",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_wrong_values_are_refused(case: Case) -> None:
    assert said_about(changed(JOB, (case.old, case.new))) == [case.message]


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
