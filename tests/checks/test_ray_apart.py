"""The assignment of tests to processes: one process runs the tests that start Ray, until no others are left."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from tests.conftest import RAY_FILES, RayApart

RAY, RAY_2 = "tests/local/test_nodes.py", "tests/train"
UNIT, UNIT_2 = "tests/core/test_cost.py", "tests/core/test_decide.py"
MINE, OTHER = "mine", "other"


def following(waiting: list[str], **running: dict[str, dict[str, bool]]) -> str:
    """The scope that the process `mine` gets next."""
    scheduler: Any = RayApart.__new__(RayApart)
    scheduler.workqueue = OrderedDict((scope, {scope: False}) for scope in waiting)
    scheduler.assigned_work = {MINE: {}, OTHER: {}, **running}
    return str(scheduler._next_for(MINE))


@pytest.mark.parametrize(
    ("waiting", "running", "expected"),
    [
        pytest.param([UNIT, RAY], {}, RAY, id="Ray first, where no process runs it"),
        pytest.param([RAY, UNIT], {OTHER: {RAY_2: {"a": True, "b": False}}}, UNIT, id="another process runs Ray"),
        pytest.param([UNIT, RAY], {OTHER: {RAY_2: {"a": True, "b": True}}}, RAY, id="another process is done with Ray"),
        pytest.param([UNIT, RAY], {MINE: {RAY_2: {"a": False}}}, RAY, id="the process that runs Ray takes more of it"),
        pytest.param([RAY], {OTHER: {RAY_2: {"a": False}}}, RAY, id="two at a time when nothing else is left"),
        pytest.param([UNIT_2, UNIT], {}, UNIT_2, id="no Ray is left"),
    ],
)
def test_a_process_gets_ray_tests_only_if_no_other_process_runs_them(
    waiting: list[str], running: dict[str, Any], expected: str
) -> None:
    assert following(waiting, **running) == expected


def test_files_that_share_a_ray_cluster_are_one_scope_and_others_separate_ones() -> None:
    scheduler: Any = RayApart.__new__(RayApart)
    assert scheduler._split_scope("tests/train/test_tune.py::test_one[a::b]") == "tests/train"
    assert scheduler._split_scope(f"{RAY}::test_one") == RAY
    assert scheduler._split_scope(f"{UNIT}::test_one[a::b]") == UNIT


def test_the_listed_ray_files_exist() -> None:
    from tests.docs.markdown import ROOT

    assert [name for name in RAY_FILES if not (ROOT / name).exists()] == []
