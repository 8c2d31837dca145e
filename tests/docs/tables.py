"""The tables of the documentation that show tables of the code."""

from __future__ import annotations

from collections.abc import Iterable

from spotladder.core.diagnosis import impediment, verdict
from spotladder.core.diagnosis.impediment import Timer
from spotladder.core.model import Stage
from spotladder.core.rules import table
from spotladder.core.transitions import TRANSITIONS


def impediments() -> str:
    """The list of impediments, for docs/conditions.md."""
    rows = []
    for rule in impediment.IMPEDIMENTS:
        effects = {"failure": rule.counted, "tier exhausted": rule.exhausts, "`Degraded`": rule.degraded}
        named = ", ".join(name for name, holds in effects.items() if holds)
        noted = _timer(rule.timer) + (f"; {named}" if named else "")
        rows.append(f"- `{rule.reason}` ({noted}): {_first_sentence(rule.describe)}\n")
    return "".join(rows)


def life_cycle() -> str:
    """The stages of a job for docs/design.md: the rules of each in order of precedence, and the next stages."""
    rows = [f"- each live stage: {_listed(rule.__name__ for rule in table._ENDS)}\n"]
    for stage, row in TRANSITIONS.items():
        own = [rule for rule in table.RULES_OF_STAGES[stage] if rule not in table._ENDS or stage is Stage.IDLE]
        if row:
            rows.append(
                f"- `{stage}`: {_listed(rule.__name__ for rule in own)} → {_listed(dict.fromkeys(row.values()))}\n"
            )
    return "".join(rows)


def verdicts() -> str:
    """The list of verdicts, for docs/conditions.md."""
    rows = [(rule.name, rule.outcome.value, _first_sentence(rule.describe)) for rule in verdict.VERDICTS]
    return "".join(f"- `{name}`, {outcome}: {evidence}\n" for name, outcome, evidence in rows)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _timer(timer: Timer) -> str:
    return f"`{timer}`" if timer.endswith("Timeout") else timer


def _first_sentence(described: object) -> str:
    text = " ".join((described.__doc__ or "").split())
    return text.partition(". ")[0].rstrip(".")
