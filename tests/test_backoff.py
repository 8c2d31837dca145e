from __future__ import annotations

import pytest

from spotladder.backoff import delay


@pytest.mark.parametrize(
    ("failures", "jitter", "seconds"),
    [(1, 1.0, 0.5), (2, 1.0, 1.0), (3, 1.0, 2.0), (1, 0.0, 0.25), (7, 1.0, 30.0), (5000, 1.0, 30.0), (7, 0.0, 15.0)],
)
def test_the_delay_doubles_up_to_its_limit(failures: int, jitter: float, seconds: float) -> None:
    assert delay(0.5, 30.0, failures, jitter) == seconds
