"""Renders attempts, and returns parts of the rendered objects."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.api.tieredjob import TieredJob
from spotladder.errors import InvalidSpec
from spotladder.workloads import names
from spotladder.workloads.kinds import workload_of
from tests.workloads.builders import tier, worker_spec

RAY = "spec.workload.ray.template.spec"
SET = "spec.workload.jobSet.template.spec"


def rendered(of: TieredJob, env: dict[str, str] | None = None, **capacity: Any) -> dict[str, Any]:
    """The RayJob or JobSet of attempt 3."""
    return workload_of(of).render(of, names.Origin("u-1"), tier(of, **capacity), 3, env or {})[-1]


def workers(of: TieredJob, env: dict[str, str] | None = None, **capacity: Any) -> dict[str, Any]:
    """The rendered pod spec of the workers."""
    return worker_spec(rendered(of, env, **capacity))


def head(of: TieredJob, **capacity: Any) -> dict[str, Any]:
    spec: dict[str, Any] = rendered(of, **capacity)["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    return spec


def env_of(container: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def rejection(of: TieredJob, **capacity: Any) -> InvalidSpec:
    with pytest.raises(InvalidSpec) as error:
        rendered(of, **capacity)
    return error.value
