"""Messages for invalid numbers, durations, amounts and times. The messages are compared exactly."""

from __future__ import annotations

import pytest

from tests.api.builders import JOB, Case, changed, said_about

RAY_CLUSTER = "spec.workload.ray.template.spec.rayClusterSpec"
FIXED_SIZE = (
    "the workers on the tier are asked for together, and a smaller cluster counts as missing capacity; remove it, and "
    "for fewer workers set spec.elastic: {min: 1}"
)

CASES = [
    Case(
        "integer above 32 bits",
        "maxFailures: 3",
        f"maxFailures: {10**30}",
        "job.yaml:10:18: spec.tiers[0].maxFailures: must be at most 2147483647",
    ),
    Case(
        "optional integer above 32 bits",
        "  grace: 90s",
        f"  restartPolicy: {{backoffLimit: {10**30}}}",
        "job.yaml:16:33: spec.restartPolicy.backoffLimit: must be at most 2147483647",
    ),
    Case(
        "duration above the maximum",
        "provisionTimeout: 10m",
        "provisionTimeout: 99999999999h",
        "job.yaml:11:23: spec.tiers[0].provisionTimeout: must be at most 87600h (ten years)",
    ),
    Case(
        "duration below the minimum",
        "provisionTimeout: 10m",
        "provisionTimeout: 0.1ms",
        "job.yaml:11:23: spec.tiers[0].provisionTimeout: must be more than 0s (at least 1ms)",
    ),
    Case(
        "maxFailures -2",
        "maxFailures: 3",
        "maxFailures: -2",
        "job.yaml:10:18: spec.tiers[0].maxFailures: must be at least -1, not -2",
    ),
    Case(
        "overlap without the fence",
        "handover: Fenced",
        "handover: WhenGone\n  overlap: {maxDuration: 30m}",
        "job.yaml:18:3: spec.overlap: needs handover: Fenced, because two attempts run at once: remove overlap, or set "
        "handover: Fenced if the program uses spotladder.train",
    ),
    Case(
        "overlap of no duration",
        "handover: Fenced",
        "overlap: {maxDuration: 0s}",
        "job.yaml:17:26: spec.overlap.maxDuration: must be more than 0s",
    ),
    Case(
        "overlap that may cost nothing",
        "handover: Fenced",
        'overlap: {budget: "0"}',
        "job.yaml:17:21: spec.overlap.budget: must be more than 0, or no second attempt could run: remove overlap",
    ),
    Case(
        "hedge without a budget",
        "handover: Fenced",
        "overlap: {hedgeAfter: 5m}",
        "job.yaml:17:13: spec.overlap.hedgeAfter: needs overlap.budget, which limits what the second attempts cost: "
        "set it in USD",
    ),
    Case(
        "hedge of a job with one tier",
        "  - name: on-demand\n    capacityTier: g5-od-use1\n    maxFailures: 1\n    provisionTimeout: 30m\n"
        "  grace: 90s",
        '  grace: 90s\n  overlap: {budget: "5", hedgeAfter: 5m}',
        "job.yaml:13:26: spec.overlap.hedgeAfter: needs a second tier, which is started beside the first: add a tier, "
        "or remove hedgeAfter",
    ),
    Case(
        "hedge that never starts",
        "handover: Fenced",
        'overlap: {hedgeAfter: 10m, budget: "5"}',
        "job.yaml:17:13: spec.overlap.hedgeAfter: has no effect, because the job leaves a tier after provisionTimeout "
        "(10m): set less",
    ),
    Case(
        "queue with capitals",
        "maxFailures: 3",
        "queue: Team_A",
        'job.yaml:10:12: spec.tiers[0].queue: "Team_A" is not a valid name: use lower-case letters, digits and '
        "'-', no '-' at the ends; for example \"team-a\"",
    ),
    Case(
        "queueTimeout of 0",
        "maxFailures: 3",
        "queueTimeout: 0s",
        "job.yaml:10:19: spec.tiers[0].queueTimeout: must be more than 0s",
    ),
    Case(
        "queueTimeout without unit",
        "maxFailures: 3",
        "queueTimeout: 60",
        "job.yaml:10:19: spec.tiers[0].queueTimeout: needs a unit: write 60s for seconds (or 10m, 1h30m)",
    ),
    Case(
        "fewer workers than replicas",
        "              replicas: 2",
        "              replicas: 2\n              minReplicas: 1",
        f"job.yaml:31:28: {RAY_CLUSTER}.workerGroupSpecs[0].minReplicas: must equal replicas: {FIXED_SIZE}",
    ),
    Case(
        "maxFailures as text",
        "maxFailures: 3",
        'maxFailures: "3"',
        "job.yaml:10:18: spec.tiers[0].maxFailures: must be a whole number without quotes",
    ),
    Case(
        "maxFailures as a fraction",
        "maxFailures: 3",
        "maxFailures: 3.5",
        'job.yaml:10:18: spec.tiers[0].maxFailures: must be a whole number, not "3.5"',
    ),
    Case(
        "maxFailures as a word",
        "maxFailures: 3",
        "maxFailures: three",
        'job.yaml:10:18: spec.tiers[0].maxFailures: must be a whole number, not "three"',
    ),
    Case(
        "maxFailures as a list",
        "maxFailures: 3",
        "maxFailures: [3]",
        "job.yaml:10:18: spec.tiers[0].maxFailures: must be a whole number",
    ),
    Case(
        "number without unit",
        "grace: 90s",
        "grace: 90",
        "job.yaml:16:10: spec.grace: needs a unit: write 90s for seconds (or 10m, 1h30m)",
    ),
    Case(
        "negative duration",
        "grace: 90s",
        "grace: -5s",
        "job.yaml:16:10: spec.grace: must not be negative",
    ),
    Case(
        "startTimeout of 0",
        "grace: 90s",
        "startTimeout: 0s",
        "job.yaml:16:17: spec.startTimeout: must be more than 0s",
    ),
    Case(
        "contactTimeout without unit",
        "grace: 90s",
        "contactTimeout: 100",
        "job.yaml:16:19: spec.contactTimeout: needs a unit: write 100s for seconds (or 10m, 1h30m)",
    ),
    Case(
        "negative number as duration",
        "grace: 90s",
        "grace: -5",
        "job.yaml:16:10: spec.grace: must not be negative",
    ),
    Case(
        "duration in days",
        "grace: 90s",
        "grace: 1d",
        'job.yaml:16:10: spec.grace: "1d" is not a duration: write 24h',
    ),
    Case(
        "duration in words",
        "grace: 90s",
        "grace: 10 minutes",
        'job.yaml:16:10: spec.grace: "10 minutes" is not a duration: write 10m',
    ),
    Case(
        "duration as a clock time",
        "grace: 90s",
        "grace: 1:30",
        'job.yaml:16:10: spec.grace: "1:30" is not a duration: write 1m30s',
    ),
    Case(
        "text that is not a duration",
        "grace: 90s",
        "grace: soon",
        'job.yaml:16:10: spec.grace: "soon" is not a duration: write one like 90s, 10m, 1h30m or 500ms',
    ),
    Case(
        "empty duration",
        "grace: 90s",
        'grace: ""',
        'job.yaml:16:10: spec.grace: "" is not a duration: write one like 90s, 10m, 1h30m or 500ms',
    ),
    Case(
        "provisionTimeout of 0",
        "provisionTimeout: 10m",
        "provisionTimeout: 0s",
        "job.yaml:11:23: spec.tiers[0].provisionTimeout: must be more than 0s",
    ),
    Case(
        "cache without size",
        "    interval: 5m",
        "    cache: {}",
        "job.yaml:20:12: spec.checkpoints.cache.sizeLimit: is required: maximum size of the volume, an emptyDir on the "
        "node's disk. Allow for two checkpoints of all ranks of a pod. With less space the cache holds fewer files",
    ),
    Case(
        "cache as a size",
        "    interval: 5m",
        "    cache: 20Gi",
        'job.yaml:20:12: spec.checkpoints.cache: must be a mapping: lines of the form "name: value"',
    ),
    Case(
        "cache with a unit that Kubernetes does not have",
        "    interval: 5m",
        "    cache: {sizeLimit: 20GB}",
        'job.yaml:20:24: spec.checkpoints.cache.sizeLimit: "20GB" is not a size: write one like 20Gi or 500Mi',
    ),
    Case(
        "cache with a size of 20 bytes",
        "    interval: 5m",
        "    cache: {sizeLimit: 20}",
        "job.yaml:20:24: spec.checkpoints.cache.sizeLimit: must be at least 1Mi, not 20; write a size like 20Gi",
    ),
    Case(
        "cache with a negative size",
        "    interval: 5m",
        "    cache: {sizeLimit: -1Gi}",
        'job.yaml:20:24: spec.checkpoints.cache.sizeLimit: "-1Gi" is not a size: write one like 20Gi or 500Mi',
    ),
    Case(
        "cache with an enormous size",
        "    interval: 5m",
        "    cache: {sizeLimit: 5000Pi}",
        "job.yaml:20:24: spec.checkpoints.cache.sizeLimit: must be at most 1000P",
    ),
    Case(
        "cache with a switch as its size",
        "    interval: 5m",
        "    cache: {sizeLimit: true}",
        "job.yaml:20:24: spec.checkpoints.cache.sizeLimit: must be a size like 20Gi or 500Mi",
    ),
    Case(
        "interval without unit",
        "interval: 5m",
        "interval: 50",
        "job.yaml:20:15: spec.checkpoints.interval: needs a unit: write 50steps or 50s",
    ),
    Case(
        "boolean as text",
        "suspend: false",
        'suspend: "no"',
        "job.yaml:21:12: spec.suspend: must be true or false",
    ),
    Case(
        "budget with a sign",
        "  grace: 90s",
        "  budget: $250",
        'job.yaml:16:11: spec.budget: must be a plain number like "250"',
    ),
    Case(
        "negative budget",
        "  grace: 90s",
        "  budget: -1",
        "job.yaml:16:11: spec.budget: must not be negative",
    ),
    Case(
        "negative budget as text",
        "  grace: 90s",
        '  budget: "-1"',
        "job.yaml:16:11: spec.budget: must not be negative",
    ),
    Case(
        "budget of 0",
        "  grace: 90s",
        '  budget: "0"',
        "job.yaml:16:11: spec.budget: must be more than 0, or the job would fail before it starts",
    ),
    Case(
        "budget of .nan",
        "  grace: 90s",
        "  budget: .nan",
        "job.yaml:16:11: spec.budget: must be finite",
    ),
    Case(
        "duration that is not a number",
        "  grace: 90s",
        "  grace: .nan",
        "job.yaml:16:10: spec.grace: must be a duration like 90s, 10m or 1h30m",
    ),
    Case(
        "infinite duration",
        "  grace: 90s",
        "  grace: .inf",
        "job.yaml:16:10: spec.grace: must be a duration like 90s, 10m or 1h30m",
    ),
    Case(
        "interval that is not a number",
        "interval: 5m",
        "interval: .nan",
        "job.yaml:20:15: spec.checkpoints.interval: must be a number of steps or a duration, like 50steps or 5m",
    ),
    Case(
        "deadline without zone",
        "  grace: 90s",
        "  deadline: 2026-12-01T00:00:00",
        'job.yaml:16:13: spec.deadline: "2026-12-01T00:00:00" has no time zone: write 2026-12-01T00:00:00Z for UTC',
    ),
    Case(
        "deadline with an invalid date",
        "  grace: 90s",
        "  deadline: 2026-02-30T00:00:00Z",
        'job.yaml:16:13: spec.deadline: "2026-02-30T00:00:00Z" is not a date and time: day is out of range for month',
    ),
    Case(
        "deadline as a date",
        "  grace: 90s",
        "  deadline: 2026-12-01",
        "job.yaml:16:13: spec.deadline: must be a date and time with zone, like 2026-12-01T00:00:00Z",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_message_for_an_invalid_value(case: Case) -> None:
    assert said_about(changed(JOB, (case.old, case.new))) == [case.message]
