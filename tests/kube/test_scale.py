"""The benchmarks of many jobs, run with a few."""

from __future__ import annotations

from tests.bench import bench_idle, bench_scale
from tests.kube.apiserver import ApiServer


def test_the_benchmark_of_many_jobs_runs(api_server: ApiServer) -> None:
    assert api_server.url  # Skips the test without an API server. The benchmark starts its own.
    busy, storm, *beside = bench_scale.measure(jobs=8, evicted=2)
    assert min(busy.measured, storm.measured) > 0
    assert [row.ratio and row.ratio > 0 for row in beside] == [True, True]


def test_the_benchmark_of_many_idle_jobs_runs(api_server: ApiServer) -> None:
    assert api_server.url
    found = {row.name: row for row in bench_idle.measure(jobs=8, run=2, rest=1)}
    assert found["start with 8 jobs and 40 pods → ready"].measured > 0
    assert found["memory, 8 jobs with 40 pods"].met
    assert found["API calls, 8 idle jobs"].met, "copied jobs run as they are: the controller writes nothing"
