"""The data file of the `adaptive` policy: its content, and the errors for invalid files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from spotladder.core.ages import AGES
from spotladder.core.policies.adaptive import Adaptive
from spotladder.core.policies.adaptive_tables import OVERHEADS, RATIOS, WORK, columns, knot_of, place_of, slack_at
from spotladder.errors import EnvironmentFailure
from spotladder.policies import adaptive_model, registry
from spotladder.policies.adaptive_model import parsed, shipped, written

HOUR = 3600.0


def test_the_shipped_model_is_unchanged_by_writing_and_parsing() -> None:
    model, again = shipped(), parsed(written(shipped()), "again")
    assert (again.shares, again.hazards, again.slack) == (model.shares, model.hazards, model.slack)
    assert len(model.slack) == len(OVERHEADS) * len(RATIOS) * len(model.shares) * 2 * len(AGES) * len(WORK)


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


def edited(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(written(shipped()))
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda file: file.pop("zones"), "expected an object with the fields ages, format"),
        (lambda file: file.update(format=2), "format: expected 1, got 2"),
        (lambda file: file.update(ages=[1, 2]), "ages: expected [1, 2, 3, 5, 9, 17, 37, 73], got [1, 2]"),
        (lambda file: file.update(zones=[]), "zones: expected a list with at least one zone"),
        (lambda file: file["zones"][3].pop("share"), "zones[3]: expected an object with the fields back, lost, share"),
        (lambda file: file["zones"][1].update(share=1.5), "zones[1].share: expected 1 probabilities between 0 and 1"),
        (lambda file: file["zones"][0]["lost"].pop(), "zones[0].lost: expected 8 probabilities between 0 and 1"),
        (lambda file: file["slack"].pop(), "slack: expected a list of 192 lists"),
        (lambda file: file["slack"][7].append(1), "slack[7]: expected 88 integers"),
        (lambda file: file["slack"][0].__setitem__(0, True), "slack[0]: expected 88 integers"),
    ],
)
def test_an_invalid_model_file_is_rejected_with_the_field(
    change: Callable[[dict[str, Any]], object], problem: str
) -> None:
    with pytest.raises(EnvironmentFailure) as caught:
        parsed(edited(change), "model.json")
    assert str(caught.value).startswith(f"model.json: {problem}")


def test_a_truncated_model_file_is_rejected() -> None:
    with pytest.raises(EnvironmentFailure, match=r"^model\.json: is not JSON: "):
        parsed(written(shipped())[:-10], "model.json")


def test_the_error_for_a_missing_model_file_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive_model, "FILE", "absent.json")
    with pytest.raises(EnvironmentFailure, match=r"absent\.json: cannot be read: No such file or directory"):
        shipped.__wrapped__()
