"""The list of errors for a file: complete, in order, without secrets, and limited."""

from __future__ import annotations

import pytest

from tests.api.builders import JOB, TIERS, changed, said_about


def test_all_errors_of_a_file_are_reported_in_file_order() -> None:
    text = changed(
        JOB, ("maxFailures: 3", "maxFailures: -2"), ("grace: 90s", "grace: 90"), ("handover", "handver"),
        ("s3://", "s4://"), ("entrypoint: python train.py", "entrypoint:"),
    )  # fmt: skip
    places = [line.split(": ")[1] for line in said_about(text)]
    assert places == [
        "spec.tiers[0].maxFailures",
        "spec.grace",
        "spec.handver",
        "spec.checkpoints.uri",
        "spec.workload.ray.template.spec.entrypoint",
    ]


SECRETS = {
    "in the address": ("s3://bucket/prefix", "s3://KEY:hunter2@bucket/prefix"),
    "in an address with one slash": ("s3://bucket/prefix", "s3:/KEY:hunter2@bucket/prefix"),
    "in an unknown address": ("s3://bucket/prefix", "ftp://KEY:hunter2@bucket/prefix"),
    "in the query": ("s3://bucket/prefix", "s3://bucket/prefix?secret=hunter2"),
    "in a tier's environment": ("    provisionTimeout: 30m", "    overrides: {env: {A: [hunter2]}}"),
    "an octal number": ("    provisionTimeout: 30m", "    overrides: {env: {A: 0123}}"),
    "in the runtime environment": (
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'env_vars: {A: [hunter2], B: 0123}'",
    ),
    "in a broken runtime environment": (
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'env_vars: {A: hunter2'",
    ),
    "in an annotation": ("  name: digits", "  name: digits\n  annotations: {a: {hunter2: 1}}"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_messages_do_not_repeat_possible_secrets(name: str) -> None:
    lines = said_about(changed(JOB, SECRETS[name]))
    assert lines
    assert not [line for line in lines if "hunter2" in line or "0123" in line]


def test_only_the_first_20_errors_are_listed() -> None:
    tiers = "".join(f"  - {{name: t{index}, capacityTier: c, maxFailures: -5}}\n" for index in range(30))
    lines = said_about(changed(JOB, (TIERS, tiers)))
    assert len(lines) == 21
    assert lines[-1] == "10 more problems; correct these first"
