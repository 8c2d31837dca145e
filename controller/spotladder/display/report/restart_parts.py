"""Where restarts go: the mean duration of each part, and the parts of each restart."""

from __future__ import annotations

from spotladder.display.figures import NONE, span
from spotladder.display.report.facts import RunFacts
from spotladder.display.report.markup import Markup, bar, element, table
from spotladder.records.restarts import NAMES, average


def where_restarts_go(facts: RunFacts) -> Markup | None:
    """The section of the report; None without a restart."""
    if not facts.restarts:
        return None
    seen = {part.step for restart in facts.restarts for part in restart.parts}
    shown = [step for step in NAMES if step in seen]
    rows = []
    for restart in facts.restarts:
        lasted = {part.step: span(part.seconds) for part in restart.parts}
        total = span(restart.seconds) if restart.complete else NONE
        rows.append((str(restart.attempt), restart.tier, total, *(lasted.get(step, NONE) for step in shown)))
    means = average(facts.restarts)
    longest = max((seconds for _, seconds in means), default=0.0) or 1.0
    bars = [bar(name, seconds / longest, span(seconds)) for name, seconds in means]
    note = (
        "From the loss or the notice to the first step of the next attempt. A part ends at what it is named after; the "
        "time to a point that was not observed belongs to the next part."
    )
    if facts.spec.step_time:
        note += " All times here are real, not those of the simulated training."
    return element(
        "section",
        element("h2", "Where restarts go"),
        element("div", *bars, class_="bars") if means else None,
        table(("attempt", "tier", "in all", *(NAMES[step] for step in shown)), rows, left=(1,)),
        element("p", note, class_="note"),
    )
