"""The tables of the documentation that show tables of the code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from spotladder.core import impediment, verdict
from spotladder.core.impediment import Timer
from spotladder.core.model import Stage
from spotladder.core.rules import table
from spotladder.core.rules.effect import Rule
from spotladder.workloads.provisioner_messages import Meaning

EFFECTS: Mapping[Meaning, str] = MappingProxyType(
    {
        Meaning.NO_CAPACITY: "the tier gives no node: `fallback` leaves it at once, `wait` after `provisionTimeout`",
        Meaning.QUOTA: "as no capacity: a quota of the cloud belongs to one purchase option and region",
        Meaning.BACKOFF: "as no capacity: the autoscaler tried in vain and tries again later",
        Meaning.POOL_LIMIT: "`provisionTimeout` runs: nodes of the pool may become free",
        Meaning.MIXED: "`provisionTimeout` runs: the sentence does not say whether capacity is missing",
        Meaning.MISFIT: "`PodDoesNotFit`: no wait mends it",
        Meaning.VOLUME: "`VolumeUnavailable`: the user must act, no timer runs",
        Meaning.IMAGE: "`ImageUnavailable`: the user must act, no timer runs",
        Meaning.RESOURCE_QUOTA: "`QuotaExceeded`: the quota of the namespace is the same for all tiers, no timer runs",
        Meaning.RIGHTS: "`AccessDenied`: the user must act, no timer runs",
        Meaning.ADMISSION: "`Blocked`: the user must act, no timer runs",
        Meaning.TEMPLATE: "`Blocked`: the user must act, no timer runs",
        Meaning.NO_ANSWER: "`OperatorSilent`: the API server or an admission webhook does not answer, no timer runs",
    }
)
"""What each meaning of a sentence does."""


def impediments() -> str:
    """The table of impediments, for docs/conditions.md."""
    head = ("impediment", "reason", "evidence", "timer", "counts a failure", "exhausts the tier", "`Degraded`")
    rows = [
        (
            rule.impediment,
            f"`{rule.reason}`",
            _first_sentence(rule.describe),
            _timer(rule.timer),
            _yes(rule.counted),
            _yes(rule.exhausts),
            _yes(rule.degraded),
        )
        for rule in impediment.IMPEDIMENTS
    ]
    return _table(head, rows)


def rules() -> str:
    """The table of the life cycle, for docs/design.md. The rules that every live attempt has are listed once."""
    ends = table._ENDS
    parts = [_events("a live attempt, in each of its stages", ends)]
    for stage, listed in table.RULES_OF_STAGES.items():
        own = tuple(rule for rule in listed if rule not in ends or stage is Stage.IDLE)
        if own:
            parts.append(_events(f"`{stage}`", own))
    return "\n".join(parts)


def verdicts() -> str:
    """The table of verdicts, for docs/conditions.md."""
    rows = [(f"`{rule.name}`", _first_sentence(rule.describe), rule.outcome.value) for rule in verdict.VERDICTS]
    return _table(("row", "evidence", "outcome"), rows)


def effects() -> str:
    """The effects of the meanings, for docs/conditions.md."""
    return _table(("meaning", "effect"), EFFECTS.items())


def _events(title: str, listed: Iterable[Rule]) -> str:
    rows = [(f"`{rule.__name__}`", _first_sentence(rule)) for rule in listed]
    return _table((f"Events of {title}", "What follows"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---" for _ in head], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _timer(timer: Timer) -> str:
    return f"`{timer}`" if timer.endswith("Timeout") else timer


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _first_sentence(described: object) -> str:
    text = " ".join((described.__doc__ or "").split())
    return text.partition(". ")[0].rstrip(".")
