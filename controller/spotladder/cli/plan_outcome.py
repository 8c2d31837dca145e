"""The option --plan of `spotladder report`: the plan of the job beside its run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spotladder.cli.output import print_table
from spotladder.errors import InvalidSpec

if TYPE_CHECKING:
    from spotladder.display.report.plan_comparison import PlanComparison


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


def print_plan(found: PlanComparison) -> None:
    """The table of the terminal."""
    from spotladder.display.report.plan_comparison import COLUMNS

    print_table(COLUMNS, list(found.rows()), found.title)
