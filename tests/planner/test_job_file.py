"""Proposed settings in the text of a job file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.api.check import checked
from spotladder.api.document import documents_of
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import Tier
from spotladder.errors import InvalidSpec
from spotladder.planner.job_file import with_settings
from tests.api.builders import JOB, changed

BEFORE = (Tier("spot-a", 3, 600.0), Tier("on-demand", 1, 1800.0))
COMMENTED = changed(
    JOB,
    ("    maxFailures: 3\n", "    maxFailures: 3   # tolerated losses\n"),
    ("  grace: 90s", "  # time to commit\n  grace: 90s"),
    ("uri: s3://bucket/prefix", "uri: 's3://bucket/prefix'"),
)


def test_only_changed_settings_differ() -> None:
    assert with_settings(COMMENTED, "job.yaml", BEFORE, BEFORE) == COMMENTED
    after = (replace(BEFORE[0], max_failures=5), BEFORE[1])
    assert with_settings(COMMENTED, "job.yaml", BEFORE, after) == COMMENTED.replace("maxFailures: 3", "maxFailures: 5")


def test_tiers_timeouts_and_the_interval_change() -> None:
    after = (BEFORE[1], replace(BEFORE[0], provision_timeout=900.0))
    job = checked(documents_of(with_settings(COMMENTED, "job.yaml", BEFORE, after, 240.0), "job.yaml")[0], TieredJob)
    assert [(tier.name, tier.provision_timeout) for tier in job.spec.tiers] == [("on-demand", 1800), ("spot-a", 900)]
    assert job.spec.checkpoints.interval == "4m"


def test_a_setting_that_the_file_leaves_to_its_default_is_added() -> None:
    text = changed(JOB, ("    maxFailures: 3\n", ""))
    before = (replace(BEFORE[0], max_failures=0), BEFORE[1])
    job = checked(documents_of(with_settings(text, "job.yaml", before, BEFORE), "job.yaml")[0], TieredJob)
    assert job.spec.tiers[0].max_failures == 3


def test_an_invalid_result_is_refused() -> None:
    after = (replace(BEFORE[0], max_failures=-2), BEFORE[1])
    with pytest.raises(InvalidSpec, match=r"job\.yaml:\d+:\d+: spec\.tiers\[0\]\.maxFailures"):
        with_settings(JOB, "job.yaml", BEFORE, after)
