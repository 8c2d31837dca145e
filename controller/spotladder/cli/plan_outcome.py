"""`spotladder report --plan`: what a plan of the job expected, by simulation and by the formulas, and what happened."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spotladder.cli.output import print_table
from spotladder.core.accounting import HOUR
from spotladder.errors import InvalidSpec

if TYPE_CHECKING:
    from spotladder.core.model import JobState

COLUMNS = ("", "Plan, mean", "Plan, p90", "Formulas", "Happened")


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One quantity, in USD, hours or a number: the mean and the 90th percentile of the simulated runs, the value of the
    closed formulas, and that of the run. None: unknown."""

    name: str
    key: str
    mean: float | None
    p90: float | None
    formulas: float | None
    happened: float | None


def read_plan(file: Path) -> Mapping[str, Any]:
    """A plan that `spotladder plan -o json` wrote. Raises InvalidSpec."""
    try:
        plan = json.loads(file.read_bytes())
    except OSError as error:
        raise InvalidSpec(f"{file} cannot be read: {error.strerror or error}: name a plan", path="--plan") from None
    except ValueError:
        plan = None
    if not isinstance(plan, dict) or not isinstance(plan.get("choices"), list) or "simulation" not in plan:
        advice = "write it with `spotladder plan job.yaml --hours T -o json > plan.json`"
        raise InvalidSpec(f"{file} is not a plan: {advice}", path="--plan")
    return plan


def plan_rows(plan: Mapping[str, Any], state: JobState) -> list[PlanRow]:
    """The plan beside the run of this state, so far if it has not ended. Raises InvalidSpec for a damaged plan."""
    try:
        simulated = plan["simulation"] or {}
        written = next((one for one in plan["choices"] if one["maxFailures"] is None), None)
        by_formula = written or {"totalHours": None, "expectedFailures": None, "accountings": {}}
        usd = by_formula["accountings"].get(plan.get("accounting"), {}).get("costUsd")
        cost, hours = simulated.get("costUsd") or {}, simulated.get("finishHours") or {}
        unpriced = any(tier.unpriced for tier in state.tiers)
        spent = None if unpriced else state.spent_usd
        return [
            PlanRow("Cost", "costUsd", cost.get("mean"), cost.get("p90"), usd, spent),
            PlanRow("Takes", "hours", hours.get("mean"), hours.get("p90"), by_formula["totalHours"], _hours(state)),
            PlanRow(
                "Failures",
                "failures",
                simulated.get("losses"),
                None,
                by_formula["expectedFailures"],
                float(state.failures),
            ),
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidSpec(f"is not a plan of this version ({error!r}): write it again", path="--plan") from None


def print_plan(rows: list[PlanRow], *, ended: bool) -> None:
    """The table of the terminal."""
    form = {"costUsd": "${:.2f}", "hours": "{:.2f} h", "failures": "{:.1f}"}

    def cell(row: PlanRow, value: float | None) -> str:
        return "–" if value is None else form[row.key].format(value)

    cells = [
        (row.name, *(cell(row, value) for value in (row.mean, row.p90, row.formulas, row.happened))) for row in rows
    ]
    print_table(COLUMNS, cells, "The plan and the run" + ("" if ended else ", which has not ended"))


def plain_plan(rows: list[PlanRow]) -> dict[str, dict[str, float | None]]:
    """The comparison as data."""
    return {
        row.key: {"mean": row.mean, "p90": row.p90, "formulas": row.formulas, "happened": row.happened} for row in rows
    }


def _hours(state: JobState) -> float | None:
    """From the first attempt to the end of the job, or until now."""
    began = state.started_at or min((attempt.started_at for attempt in state.history), default=None)
    if began is None:
        return None
    ended = state.ended_at or (state.history[-1].ended_at if state.attempt is None and state.history else time.time())
    return max(0.0, ended - began) / HOUR
