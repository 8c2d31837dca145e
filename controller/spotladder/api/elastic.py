"""`spec.elastic`: the numbers of workers with which a job may train."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from spotladder.api.fields import Finding, WholeNumber
from spotladder.api.ray_workload import RayWorkload
from spotladder.api.record import Record
from spotladder.api.workload import Workload
from spotladder.core.contract import Variable
from spotladder.core.model import Handover

MAX_SIZES = 100


class Elastic(Record):
    """The numbers of workers with which a job may train."""

    min: WholeNumber = Field(ge=1, description="Smallest number of workers.")
    sizes: list[WholeNumber] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_SIZES,
        description="Allowed numbers of workers, with min and the workload's number among them. Default: all from "
        "min on.",
    )


NOTICES_BY_RAY = {"RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "1", "RAY_TRAIN_PREEMPTION_POLL_INTERVAL_S": "0.5"}
"""The ranks of an elastic job learn from Ray which nodes are being drained, so that they continue without these."""


RANK_POLLS = {"RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "1"}
"""The interval at which Ray Train's controller asks the ranks of an elastic job for their state. Ray's default is 2
s."""


def elastic_environment(elastic: Elastic | None, sizes: tuple[int, ...]) -> dict[str, str]:
    """The environment variables of the program of an elastic job with these sizes; none for another job."""
    if elastic is None:
        return {}
    return {
        Variable.SIZES: ",".join(map(str, sizes)),
        **NOTICES_BY_RAY,
        **RANK_POLLS,
    }


def sizes_of(elastic: Elastic, workers: int) -> tuple[int, ...]:
    """The allowed numbers of workers, ascending. `workers` is the workload's number."""
    return tuple(sorted(set(elastic.sizes or range(elastic.min, workers + 1))))


def elastic_problems(elastic: Elastic, workload: Workload, handover: Handover, workers: int) -> list[Finding]:
    """Why a job with this number of workers cannot be elastic like this. The paths are below `spec`."""
    ray = workload.of(RayWorkload)
    if ray is None:
        message = "needs workload.ray, because Ray Train changes the number of workers: remove elastic"
        return [Finding(("elastic",), message, at_key=True)]
    found = []
    if handover is Handover.WHEN_GONE:
        message = (
            "needs handover: Fenced, because the program commits before its number of workers changes: remove elastic, "
            "or set handover: Fenced if the program uses spotladder.train"
        )
        found.append(Finding(("elastic",), message, at_key=True))
    cluster = ray.template.spec.get("rayClusterSpec", {})
    if any((group.get("numOfHosts") or 1) > 1 for group in cluster.get("workerGroupSpecs") or []):
        message = "cannot be used with numOfHosts, because the hosts of a group are lost together: remove elastic"
        found.append(Finding(("elastic",), message, at_key=True))
    return [*found, *_wrong_sizes(elastic, workers)]


def _wrong_sizes(elastic: Elastic, workers: int) -> Iterator[Finding]:
    if elastic.min > workers:
        message = f"must be at most the number of workers of the workload, {workers}, not {elastic.min}"
        yield Finding(("elastic", "min"), message)
        return
    sizes = elastic.sizes
    if sizes is None:
        return
    outside = [index for index, size in enumerate(sizes) if not elastic.min <= size <= workers]
    for index in outside:
        message = f"must be from min to the number of workers of the workload, {elastic.min} to {workers}"
        yield Finding(("elastic", "sizes", index), f"{message}, not {sizes[index]}")
    missing = [str(size) for size in dict.fromkeys((elastic.min, workers)) if size not in sizes]
    if missing and not outside:
        names = "min and the number of workers of the workload"
        yield Finding(("elastic", "sizes"), f"must contain {names}: add {' and '.join(missing)}")
