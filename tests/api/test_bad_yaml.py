"""Messages for invalid YAML and unknown kinds. The messages are compared exactly."""

from __future__ import annotations

import pytest

from tests.api.builders import JOB, Case, changed, said_about

CASES = [
    Case(
        "misspelt kind",
        "kind: TieredJob",
        "kind: TierdJob",
        'job.yaml:2:7: kind: "TierdJob" is not a kind; did you mean TieredJob?',
    ),
    Case(
        "kind of another API",
        "kind: TieredJob",
        "kind: Deployment",
        'job.yaml:2:7: kind: "Deployment" is not a kind of spotladder.io/v1alpha1: TieredJob, CapacityTier',
    ),
    Case(
        "unsupported API version",
        "spotladder.io/v1alpha1",
        "spotladder.io/v2",
        'job.yaml:1:13: apiVersion: must be spotladder.io/v1alpha1, not "spotladder.io/v2"',
    ),
    Case(
        "misspelt key kind",
        "kind: TieredJob",
        "knd: TieredJob",
        'job.yaml:1:1: must have kind (TieredJob, CapacityTier) or pools (a world file); is "knd" misspelt?',
    ),
    Case(
        "duplicate key",
        "  grace: 90s",
        "  grace: 90s\n  grace: 10s",
        "job.yaml:17:3: spec.grace: appears twice (first at 16:3); keep one",
    ),
    Case(
        "boolean of YAML 1.1 as name",
        "name: digits",
        "name: no",
        'job.yaml:4:9: metadata.name: no is a boolean for some YAML parsers and text for others: write false, or "no"',
    ),
    Case(
        "boolean of YAML 1.1",
        "suspend: false",
        "suspend: on",
        'job.yaml:21:12: spec.suspend: on is a boolean for some YAML parsers and text for others: write true, or "on"',
    ),
    Case(
        "number with leading zero",
        "maxFailures: 3",
        "maxFailures: 010",
        "job.yaml:10:18: spec.tiers[0].maxFailures: a number with a leading zero is octal for some YAML "
        "parsers: remove the zero, or use quotes",
    ),
    Case(
        "number with underscores",
        "maxFailures: 3",
        "maxFailures: 1_000",
        "job.yaml:10:18: spec.tiers[0].maxFailures: digits with _ are a number only for some YAML parsers: "
        "remove the _, or use quotes",
    ),
    Case(
        "tab indentation",
        "  grace: 90s",
        "\tgrace: 90s",
        "job.yaml:16:1: a tab is not allowed in YAML indentation: indent with spaces",
    ),
    Case(
        "unquoted colon in text",
        "entrypoint: python train.py",
        "entrypoint: echo a: b",
        "job.yaml:26:29: is not valid YAML: mapping values are not allowed here; check the indentation, and "
        "put text that contains ': ' in quotes",
    ),
    Case(
        "tag that runs code",
        "name: digits",
        "name: !!python/object/apply:os.system [x]",
        'job.yaml:4:9: metadata.name: tag "python/object/apply:os.system" is not allowed; write the value without it',
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_message_for_invalid_yaml(case: Case) -> None:
    assert said_about(changed(JOB, (case.old, case.new))) == [case.message]
