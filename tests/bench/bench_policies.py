"""Scores of every installed policy on the published 12-variant benchmark, compared with the published scores.

It needs the traces (SPOTLADDER_TRACES). Without them it is skipped, and tests/bench/results.md keeps its figures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from spotladder.core.policies.adaptive import Adaptive
from spotladder.display.report.axes import Scale, ticks
from spotladder.display.report.markup import element
from spotladder.errors import SpotladderError
from spotladder.policies import registry
from tests.bench import fit_adaptive, published, rows
from tests.bench.rows import Row
from tests.bench.ticks import drive, oracle

PUBLISHED = {"greedy": 30.98, "uniform-progress": 41.67, "adaptive": 45.15, "oracle": 52.52}
"""Published mean scores; for `adaptive` that of the best published policy."""

LIMITED = frozenset({"ordered"})
"""Policies that ignore the deadline: on a tier without maxFailures they wait for spot capacity without a limit."""

VARIANTS = tuple(str(variant) for variant in published.VARIANTS)

WIDTH, HEIGHT, LEFT = 1000, 440, 40
"""Size of the picture and its left margin, in pixels."""

COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")

FASTEST = 1_000_000
"""The goal for ticks per second of one thread."""


def measure(every: int) -> Sequence[Row]:
    traces = published.folder()
    assert traces is not None
    starts, found = published.load(traces), []
    for name in registry.names():
        if name in LIMITED:
            continue
        entrant = _entrant(name, traces)
        began = time.process_time()
        try:
            result = published.scores(starts, entrant, every=every)
        except SpotladderError as error:
            print(f"{name}: {error}", flush=True)
            continue
        speed = result.ticks / (time.process_time() - began)
        reference = PUBLISHED.get(name)
        goal = "≥ 48.1, no deadline missed" if name == "adaptive" else "no deadline missed"
        met = result.missed == 0 and (name != "adaptive" or result.mean >= 48.1)
        found.append(Row(f"{name}: mean of the 12 variants", result.mean, "points", "published", reference, goal, met))
        found += [Row(f"{name}: {variant}", value, "points", "–") for variant, value in result.variants.items()]
        found.append(Row(f"{name}: speed", speed, "ticks/s", "wanted", FASTEST, "≥ 1,000,000", speed >= FASTEST))
    found += [_oracle(starts, every), _decided(starts)]
    return found


def _oracle(starts: published.Starts, every: int) -> Row:
    """The upper bound: no policy can score more than the oracle, which knows each trace."""
    result = published.scored(starts, lambda _zone, job: oracle.run(job), every)
    reference = PUBLISHED["oracle"]
    return Row(
        "oracle: mean of the 12 variants",
        result.mean,
        "points",
        "published",
        reference,
        "the bound",
        result.missed == 0,
    )


def _entrant(name: str, traces: Path) -> published.Entrant:
    """The policy of each run. `adaptive` gets a model that is fitted on all zones except the one of the run."""
    if name != "adaptive":
        policy = registry.by_name(name)
        return lambda _zone, _job: policy
    models = fit_adaptive.held_back(fit_adaptive.load(traces))
    return lambda zone, _job: Adaptive(models[zone])


def _decided(starts: published.Starts) -> Row:
    """The speed of the real `decide`, for comparison with the fast path."""
    job = published.job(starts[published.ZONES[0]][0], 70, 0.2)
    began = time.process_time()
    result = drive.run(job, registry.by_name("ordered"))
    return Row("decide: speed", result.ticks / (time.process_time() - began), "ticks/s", "–")


def draw(found: Sequence[Row], file: Path) -> None:
    """The score of each policy on each variant, and the published mean scores as lines."""
    scores: dict[str, dict[str, float]] = {}
    for row in found:
        policy, _, variant = row.name.partition(": ")
        if variant in VARIANTS:
            scores.setdefault(policy, {})[variant] = row.measured
    low = min((value for values in scores.values() for value in values.values()), default=0.0)
    y = Scale(min(0.0, low), 100.0, HEIGHT - 60, 40)
    step = (WIDTH - LEFT) / len(VARIANTS)
    bar = 0.8 * step / max(1, len(scores))
    parts = [element("rect", width=WIDTH, height=HEIGHT, fill="white")]
    for value in ticks(100.0, 5, y.low):
        parts.append(element("line", x1=LEFT, x2=WIDTH, y1=y(value), y2=y(value), stroke="#ddd"))
        parts.append(element("text", f"{value:g}", x=LEFT - 6, y=y(value) + 4, text_anchor="end"))
    for place, (policy, values) in enumerate(scores.items()):
        colour = COLOURS[place % len(COLOURS)]
        parts.append(element("rect", x=LEFT + 130 * place, y=8, width=12, height=12, fill=colour))
        parts.append(element("text", policy, x=LEFT + 130 * place + 16, y=18))
        for index, variant in enumerate(VARIANTS):
            top, bottom = sorted((y(values[variant]), y(0.0)))
            at = LEFT + index * step + place * bar
            parts.append(element("rect", x=at, y=top, width=bar, height=bottom - top, fill=colour))
    for index, variant in enumerate(VARIANTS):
        for line, word in enumerate(variant.split(", ")):
            at = LEFT + (index + 0.4) * step
            parts.append(element("text", word, x=at, y=HEIGHT - 42 + 14 * line, text_anchor="middle"))
    for policy, dashes in (("uniform-progress", "2 4"), ("adaptive", "6 4")):
        at = y(PUBLISHED[policy])
        parts.append(element("line", x1=LEFT, x2=WIDTH, y1=at, y2=at, stroke="#555", stroke_dasharray=dashes))
    namespace = {"xmlns": "http://www.w3.org/2000/svg", "font_family": "sans-serif", "font_size": 11}
    file.write_text(element("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", **namespace) + "\n", encoding="utf-8")


if __name__ == "__main__":
    skipped = "there are no traces; set SPOTLADDER_TRACES" if published.folder() is None else ""
    rows.main(measure, "Policies on the published 12-variant benchmark", skipped=skipped, draw=draw, every=1)
