"""The data file of the `adaptive` policy: its content and its axes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spotladder.core.history.ages import AGES
from spotladder.core.policies.adaptive import Adaptive
from spotladder.core.policies.adaptive_tables import OVERHEADS, RATIOS, WORK, columns, knot_of, place_of, slack_at
from spotladder.policies import registry
from spotladder.policies.adaptive_model import shipped
from tests.bench.adaptive_file import FILE, written

HOUR = 3600.0


def test_the_shipped_model_has_the_axes_of_the_tables() -> None:
    model = shipped()
    assert FILE.read_text() == written(model)
    assert len(model.slack) == len(OVERHEADS) * len(RATIOS) * len(model.shares) * 2 * len(AGES) * len(WORK)
    assert all(len(back) == len(lost) == len(AGES) for back, lost in model.hazards)
    chances = [*model.shares, *(chance for hazards in model.hazards for row in hazards for chance in row)]
    assert all(0.0 < chance < 1.0 for chance in chances)


@pytest.mark.parametrize(
    ("overhead", "ratio", "age", "work", "slack"),
    [
        (180.0, 3.145, 0.0, 4 * HOUR, (3000.0, 1200.0)),
        (180.0, 3.145, 6 * HOUR, 48 * HOUR, (32775.0, 750.0)),
        (720.0, 3.145, 0.0, 48 * HOUR, (17025.0, 55275.0)),
        (720.0, 3.145, 6 * HOUR, 24 * HOUR, (27300.0, 2100.0)),
        (0.0, 1.5, 0.0, HOUR, (600.0, 0.0)),
        (1800.0, 8.0, 600.0, 12 * HOUR, (9900.0, 34575.0)),
    ],
)
def test_the_shipped_model_has_fixed_slacks(
    overhead: float, ratio: float, age: float, work: float, slack: tuple[float, float]
) -> None:
    """Fixed figures: a change of the file format must not change a decision."""
    even = (1.0 / len(shipped().shares),) * len(shipped().shares)
    found = [slack_at(knot_of(work), even, one) for one in columns(shipped(), (overhead, ratio), place_of(age))]
    assert found == pytest.approx(slack, abs=0.1)


def test_the_registry_creates_the_policy_with_the_shipped_model() -> None:
    policy = registry.by_name("adaptive")
    assert isinstance(policy, Adaptive)
    assert policy.model is shipped()


def test_the_adaptive_policy_and_its_model_are_loaded_only_on_use() -> None:
    program = (
        "import sys; from spotladder.policies import registry; registry.by_name('ordered'); "
        "used = [name for name in sys.modules if 'adaptive' in name]; assert not used, used; "
        "registry.by_name('adaptive')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
