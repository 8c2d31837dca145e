"""Messages for unknown, missing and misplaced fields. The messages are compared exactly."""

from __future__ import annotations

import pytest

from tests.api.builders import JOB, TIERS, Case, changed, said_about

CASES = [
    Case(
        "misspelt field",
        "maxFailures: 3",
        "maxFailure: 3",
        "job.yaml:10:5: spec.tiers[0].maxFailure: is not a known field; did you mean maxFailures?",
    ),
    Case(
        "snake case",
        "maxFailures: 3",
        "max_failures: 3",
        "job.yaml:10:5: spec.tiers[0].max_failures: is not a known field; did you mean maxFailures?",
    ),
    Case(
        "wrong case",
        "provisionTimeout: 10m",
        "ProvisionTimeout: 10m",
        "job.yaml:11:5: spec.tiers[0].ProvisionTimeout: is not a known field; did you mean provisionTimeout?",
    ),
    Case(
        "known field in the wrong place",
        "  grace: 90s",
        "  maxFailures: 1",
        "job.yaml:16:3: spec.maxFailures: does not belong here; it is spec.tiers[].maxFailures",
    ),
    Case(
        "misspelt field in the wrong place",
        "  grace: 90s",
        "  maxFailure: 1",
        "job.yaml:16:3: spec.maxFailure: is not a known field; did you mean spec.tiers[].maxFailures?",
    ),
    Case(
        "the beginning of a field, and near a field in another place",
        "    interval: 5m",
        "    interval: 5m\n    cache: {size: 10Gi, sizeLimit: 10Gi}",
        "job.yaml:21:13: spec.checkpoints.cache.size: is not a known field; did you mean sizeLimit?",
    ),
    Case(
        "unknown field",
        "    interval: 5m",
        "    zzz: 5m",
        "job.yaml:20:5: spec.checkpoints.zzz: is not a known field; known here: uri, interval, keep, "
        "programFolder, credentials, cache, price",
    ),
    Case(
        "misspelt required field is reported once",
        "capacityTier: g5-od-use1",
        "capacitytier: g5-od-use1",
        "job.yaml:13:5: spec.tiers[1].capacitytier: is not a known field; did you mean capacityTier?",
    ),
    Case(
        "missing field",
        "    capacityTier: g5-od-use1\n",
        "",
        "job.yaml:12:5: spec.tiers[1].capacityTier: is required: the CapacityTier to use. In local mode: a "
        "pool of the world file",
    ),
    Case(
        "field without value",
        "    uri: s3://bucket/prefix",
        "    uri:",
        "job.yaml:19:5: spec.checkpoints.uri: has no value: write one, or remove the line",
    ),
    Case(
        "misspelt in the RayJob",
        "entrypoint:",
        "entrypont:",
        "job.yaml:26:11: spec.workload.ray.template.spec.entrypont: is not a known field; did you mean entrypoint?",
    ),
    Case(
        "misspelt in a worker group",
        "replicas: 2",
        "replcas: 2",
        "job.yaml:30:15: spec.workload.ray.template.spec.rayClusterSpec.workerGroupSpecs[0].replcas: is not a "
        "known field; did you mean replicas?",
    ),
    Case(
        "no tiers",
        "  tiers:\n" + TIERS,
        "  tiers: []\n",
        "job.yaml:7:10: spec.tiers: must have at least one entry",
    ),
    Case(
        "tiers is a mapping",
        "  tiers:\n" + TIERS,
        "  tiers: {spot-a: {}}\n",
        'job.yaml:7:10: spec.tiers: must be a list: lines that begin with "- "',
    ),
    Case(
        "misspelt top-level field is reported once",
        "spec:\n  tiers",
        "specs:\n  tiers",
        "job.yaml:6:1: specs: is not a known field; did you mean spec?",
    ),
    Case(
        "no workload",
        "    ray:\n"
        "      template:\n"
        "        spec:\n"
        "          entrypoint: python train.py\n"
        "          rayClusterSpec:\n"
        "            workerGroupSpecs:\n"
        "            - groupName: workers\n"
        "              replicas: 2\n",
        "    {}\n",
        "job.yaml:23:5: spec.workload: needs exactly one of ray and jobSet",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_message_for_an_invalid_field(case: Case) -> None:
    assert said_about(changed(JOB, (case.old, case.new))) == [case.message]
