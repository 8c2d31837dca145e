"""The parts of the benchmarks on recorded traces that can be checked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spotladder.sim.trace import Trace
from tests.bench.bench_calibration import Planned, expected_brier, inside, standard_error
from tests.bench.bench_regret import by_tick


def clusters(*pairs: str) -> list[Planned]:
    """Runs of these traces and days, such as "a1"."""
    return [Planned(pair[0], pair[1], False, 1, "spot only", 1, 1, 1, 1, [], []) for pair in pairs]


def test_runs_of_one_trace_or_of_one_day_count_once_in_the_standard_error() -> None:
    values = [0.0, 1.0, 0.0, 1.0]
    alone = standard_error(clusters("a1", "b2", "c3", "d4"), values)
    assert alone == pytest.approx(100 * (0.25 / 3) ** 0.5), "that of a mean of independent values"
    assert standard_error(clusters("a1", "b2", "c3", "d4") * 5, values * 5) == pytest.approx(alone)
    of_traces = clusters(*(f"{trace}{day}" for day in "12345" for trace in "abcd"))
    assert standard_error(of_traces, values * 5) == pytest.approx(alone)
    of_days = clusters(*(f"{trace}{day}" for trace in "abcde" for day in "1234"))
    assert standard_error(of_days, values * 5) == pytest.approx(alone)
    assert standard_error(clusters("a1", "a1"), [0.0, 1.0]) is None


@pytest.mark.parametrize(
    "values",
    [range(41), [0] * 41, [0] * 30 + [1] * 9 + [2] * 2, [0.1 + 0.2, 0.3] * 20 + [7]],
    ids=["different", "equal", "some equal", "rounding errors"],
)
def test_a_run_like_the_simulated_ones_is_between_p10_and_p90_in_four_of_five_cases(values: list[float]) -> None:
    values = list(values)
    shares = [inside(value, values[:index] + values[index + 1 :]) for index, value in enumerate(values)]
    assert sum(shares) / len(shares) == pytest.approx(0.8)


def test_the_expected_brier_score_is_that_of_a_job_which_is_like_the_simulated_runs() -> None:
    runs, chance = 5, 0.3
    weights = [math.comb(runs, kept) * chance**kept * (1 - chance) ** (runs - kept) for kept in range(runs + 1)]
    expected = sum(weight * expected_brier([kept / runs], runs) for kept, weight in enumerate(weights))
    error = sum(weight * (kept / runs - chance) ** 2 for kept, weight in enumerate(weights))
    assert expected == pytest.approx(error + chance * (1 - chance))


def test_a_tick_has_the_nodes_that_the_trace_had_during_all_of_it() -> None:
    trace = Trace("z", np.array([0.0, 700.0, 800.0, 1800.0]), np.array([4, 3, 4, 4]), end=2500.0)
    assert by_tick(trace, 4) == [True, False, True, True]
    assert by_tick(trace, 3) == [True] * 4
