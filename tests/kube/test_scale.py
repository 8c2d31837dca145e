"""The benchmarks of many jobs, run with a few."""

from __future__ import annotations

from tests.bench import bench_idle, bench_scale
from tests.bench.rows import Row
from tests.kube.apiserver import ApiServer


def test_the_benchmark_of_many_jobs_runs(api_server: ApiServer) -> None:
    assert api_server.url  # Skips the test without an API server. The benchmark starts its own.
    found = {row.name: row for row in bench_scale.measure(jobs=8, evicted=2, solo=2)}
    assert all(row.measured >= 0 for row in found.values())
    for where in ("1 job", "4 jobs, 1 evictions/s", "8 jobs, 50 evictions/s"):
        deleted, made = (_median(found, what, where) for what in ("old attempt deleted", "next RayJob"))
        assert min(deleted, made) > 0  # The launch is the first of the two.
    bare = "minimum calls without a controller, 50 evictions/s"
    assert 0 < _median(found, "old attempt deleted", bare) < _median(found, "next RayJob", bare)
    assert found["API calls for a fallback, Events included"].measured < 25


def test_the_benchmark_of_many_idle_jobs_runs(api_server: ApiServer) -> None:
    assert api_server.url
    found = {row.name: row for row in bench_idle.measure(jobs=8, run=2, rest=1)}
    assert found["start with 8 jobs and 40 pods → ready"].measured > 0
    assert found["start with 8 jobs and 40 pods → every job reconciled"].measured > 0
    assert found["memory, 8 jobs with 40 pods"].met
    assert found["API calls, 8 idle jobs"].met, "copied jobs run as they are: the controller writes nothing"


def _median(found: dict[str, Row], what: str, where: str) -> float:
    return found[f"pod lost → {what}, {where}, p50"].measured
