"""Memory of one simulated run on traces of two weeks, of 20 weeks and of four years, beside the trace itself."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench import rows
from tests.bench.rows import Row
from tests.sim.memory import WEEK, changing, peak

LIMIT = 1.25
"""The memory of a run on the longest trace, as a multiple of that on the shortest one."""


def measure(hours: int) -> Sequence[Row]:
    shortest, found = 0.0, []
    for ticks in (2 * WEEK, 20 * WEEK, 200 * WEEK):
        used = peak(changing(ticks), hours) / 1024
        shortest = shortest or used
        name = f"one run of a {hours}-hour job, trace of {ticks:,} ticks"
        compared = "the shortest trace"
        found.append(Row(name, used, "KiB", compared, shortest, f"≤ {LIMIT}x", used <= LIMIT * shortest))
    return found


NOTE = (
    "One run with `uniform-progress` on a zone whose capacity changes about every half hour, with a deadline of twice "
    "the work. The figure is\nthe peak of `tracemalloc` without the trace, which takes 16 bytes a sample."
)


if __name__ == "__main__":
    rows.main(measure, "Memory of a simulated run", note=NOTE, hours=48)
