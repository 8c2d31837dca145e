"""The tables of the documentation that show tables of the code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from spotladder.core import impediment, verdict
from spotladder.core.impediment import Timer
from spotladder.core.model import Stage
from spotladder.core.rules import table
from spotladder.core.rules.effect import Rule
from spotladder.core.transitions import TRANSITIONS
from spotladder.workloads.provisioner_messages import Meaning

EFFECTS: Mapping[Meaning, str] = MappingProxyType(
    {
        Meaning.NO_CAPACITY: "the tier gives no node: `fallback` leaves it at once, `wait` after `provisionTimeout`",
        Meaning.QUOTA: "the tier gives no node: `fallback` leaves it at once, `wait` after `provisionTimeout`",
        Meaning.BACKOFF: "the tier gives no node: `fallback` leaves it at once, `wait` after `provisionTimeout`",
        Meaning.POOL_LIMIT: "`provisionTimeout` runs",
        Meaning.MIXED: "`provisionTimeout` runs",
        Meaning.MISFIT: "`PodDoesNotFit`",
        Meaning.VOLUME: "`VolumeUnavailable`",
        Meaning.IMAGE: "`ImageUnavailable`",
        Meaning.RESOURCE_QUOTA: "`QuotaExceeded`",
        Meaning.RIGHTS: "`AccessDenied`",
        Meaning.ADMISSION: "`Blocked`",
        Meaning.TEMPLATE: "`Blocked`",
    }
)
"""What each meaning of a sentence does."""


def impediments() -> str:
    """The table of impediments, for docs/conditions.md."""
    rows = []
    for rule in impediment.IMPEDIMENTS:
        effects = {"failure": rule.counted, "tier exhausted": rule.exhausts, "`Degraded`": rule.degraded}
        named = ", ".join(name for name, holds in effects.items() if holds)
        rows.append((f"`{rule.reason}`", _first_sentence(rule.describe), _timer(rule.timer), named))
    return _table(("reason", "evidence", "timer", "effect"), rows)


def rules() -> str:
    """The table of the life cycle, for docs/design.md: each rule with the stages in which it applies."""
    stages: dict[Rule, list[str]] = {rule: ["each live stage"] for rule in table._ENDS}
    for stage, listed in table.RULES_OF_STAGES.items():
        for rule in listed:
            if rule not in table._ENDS or stage is Stage.IDLE:
                stages.setdefault(rule, []).append(f"`{stage}`")
    rows = [(f"`{rule.__name__}`", ", ".join(named), _first_sentence(rule)) for rule, named in stages.items()]
    return _table(("event", "stages", "what follows"), rows)


def transitions() -> str:
    """The stages that may follow each stage, for docs/design.md."""
    rows = [
        (f"`{stage}`", ", ".join(f"`{one}`" for one in dict.fromkeys(row.values())))
        for stage, row in TRANSITIONS.items()
        if row
    ]
    return _table(("stage", "next stages"), rows)


def verdicts() -> str:
    """The table of verdicts, for docs/conditions.md."""
    rows = [(f"`{rule.name}`", _first_sentence(rule.describe), rule.outcome.value) for rule in verdict.VERDICTS]
    return _table(("row", "evidence", "outcome"), rows)


def effects() -> str:
    """The effects of the meanings, for docs/conditions.md."""
    meanings: dict[str, list[str]] = {}
    for meaning, effect in EFFECTS.items():
        meanings.setdefault(effect, []).append(meaning)
    return _table(("meaning", "effect"), ((", ".join(named), effect) for effect, named in meanings.items()))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---" for _ in head], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _timer(timer: Timer) -> str:
    return f"`{timer}`" if timer.endswith("Timeout") else timer


def _first_sentence(described: object) -> str:
    text = " ".join((described.__doc__ or "").split())
    return text.partition(". ")[0].rstrip(".")
