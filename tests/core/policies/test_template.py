"""The policy of docs/own-policy.md works as it is printed there."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from spotladder.core.model import Stage
from tests.core.builders import START, SteppedJob, spec, tier
from tests.core.policies.deadline_world import Plan, run_of

PAGE = Path(__file__).parents[3] / "docs" / "own-policy.md"


@pytest.fixture
def policy() -> Any:
    source, _its_test = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    scope: dict[str, Any] = {}
    exec(compile(source, str(PAGE), "exec"), scope)  # noqa: S102
    return scope["NightOwl"]()


@pytest.mark.parametrize(("hour", "chosen"), [(2, "spot-a"), (9, "on-demand")])
def test_the_documented_policy_chooses_the_tier_by_the_hour(policy: Any, hour: int, chosen: str) -> None:
    job = SteppedJob(spec(tier("spot-a", -1), tier("on-demand", -1)), policy)
    midnight = START - START % 86400
    job.now = midnight + hour * 3600
    job.see()
    assert (job.state.stage, job.state.tier) == (Stage.STARTING, chosen)


@pytest.mark.parametrize("lasts", [7200.0, 0.0], ids=["spot capacity", "no spot capacity"])
def test_the_documented_policy_meets_the_deadline(policy: Any, lasts: float) -> None:
    plan = Plan(work=4 * 3600.0, spells=(lasts, 1800.0))
    assert run_of(plan, policy, Random(1)).state.stage is Stage.SUCCEEDED
