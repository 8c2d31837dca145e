"""Messages for invalid names, labels, environment variables and choices. The messages are compared exactly."""

from __future__ import annotations

import pytest

from spotladder.policies import registry
from tests.api.builders import JOB, Case, changed, said_about

KNOWN = ", ".join(registry.names())

CASES = [
    Case(
        "misspelt policy",
        "  grace: 90s",
        "  policy: {name: orderd}",
        'job.yaml:16:18: spec.policy.name: "orderd" is not an installed policy; did you mean ordered?',
    ),
    Case(
        "unknown policy",
        "  grace: 90s",
        "  policy: {name: nope}",
        f'job.yaml:16:18: spec.policy.name: "nope" is not an installed policy; installed here: {KNOWN} '
        "(install another policy on this machine and in the controller's image)",
    ),
    Case(
        "invalid label name",
        "  name: digits",
        "  name: digits\n  labels: {a b: c}",
        'job.yaml:5:12: metadata.labels["a b"]: "a b" is not a valid label name: write team or '
        "example.com/team, at most 63 characters after '/'",
    ),
    Case(
        "invalid label value",
        "  name: digits",
        "  name: digits\n  labels: {team: a b}",
        'job.yaml:5:18: metadata.labels.team: "a b" is not a valid label value: use at most 63 letters, '
        "digits, '-', '_' and '.', beginning and ending with a letter or digit",
    ),
    Case(
        "reserved environment variable",
        "    provisionTimeout: 30m",
        "    overrides: {env: {SPOTLADDER_ATTEMPT: '7'}}",
        "job.yaml:15:23: spec.tiers[1].overrides.env.SPOTLADDER_ATTEMPT: SPOTLADDER_ATTEMPT is set by "
        "spotladder for each attempt; remove it",
    ),
    Case(
        "duplicate names",
        "name: on-demand",
        "name: spot-a",
        'job.yaml:12:11: spec.tiers[1].name: "spot-a" is already the name of tiers[0]: tier names must be unique',
    ),
    Case(
        "misspelt choice",
        "handover: Fenced",
        "handover: fence",
        'job.yaml:17:13: spec.handover: "fence" is not one of Fenced, WhenGone; did you mean Fenced?',
    ),
    Case(
        "name with odd characters",
        "name: digits",
        "name: My_Digits!",
        'job.yaml:4:9: metadata.name: "My_Digits!" is not a valid name: use lower-case letters, digits and '
        "'-', beginning with a letter; for example \"my-digits\"",
    ),
    Case(
        "name too long for a RayJob",
        "name: digits",
        "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "job.yaml:4:9: metadata.name: has 43 characters, but the maximum is 42 (a RayJob's name has 47, "
        "including -a001 for the attempt)",
    ),
    Case(
        "tier name too long for a label",
        "name: on-demand",
        "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "job.yaml:12:11: spec.tiers[1].name: has 64 characters, but the maximum is 63 (it becomes a Kubernetes label)",
    ),
    Case(
        "name is a number",
        "name: digits",
        "name: 1234",
        'job.yaml:4:9: metadata.name: must be text: write it in quotes, "1234"',
    ),
    Case(
        "name with a terminal escape",
        "name: digits",
        r'name: "\e[31mred\nline"',
        'job.yaml:4:9: metadata.name: "\\x1b[31mred\\nline" is not a valid name: use lower-case letters, digits '
        "and '-', beginning with a letter; for example \"mred-line\"",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_message_for_an_invalid_name(case: Case) -> None:
    assert said_about(changed(JOB, (case.old, case.new))) == [case.message]
