"""Draws the break-even curve."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from spotladder.cli.written_files import check_file, check_format
from spotladder.core.cost import Accounting, CostScenario, break_even
from spotladder.errors import EnvironmentFailure, not_written

_POINTS = 200
_HIGHEST_PERCENT = 500.0


def draw(file: Path, scenario: CostScenario, accounting: Accounting) -> None:
    """Write the curve of `accounting` with the scenario as a point. Raises InvalidSpec, EnvironmentFailure."""
    check_format("--plot", file)
    check_file("--plot", file)
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise EnvironmentFailure("--plot needs matplotlib: pip install 'spotladder[local]'") from None
    figure = Figure(figsize=(7, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    _curve(figure.add_subplot(), scenario, accounting)
    try:
        with mpl.rc_context({"svg.hashsalt": "spotladder", "svg.fonttype": "none"}):
            figure.savefig(file, metadata={"Date": None} if file.suffix.lower() == ".svg" else None)
    except OSError as error:
        raise not_written("--plot", file, error) from None


def _curve(axes: Any, scenario: CostScenario, accounting: Accounting) -> None:
    fractions = [index / _POINTS for index in range(_POINTS + 1)]
    limits = [100 * break_even(fraction, scenario.spot_discount, accounting) for fraction in fractions]
    overhead_percent = 100 * scenario.overhead_share
    finite = max((limit for limit in limits if math.isfinite(limit)), default=0.0)
    top = max(1.25 * overhead_percent, min(1.05 * finite, _HIGHEST_PERCENT), 10.0)
    drawn = [min(limit, 2 * top) for limit in limits]
    axes.plot(fractions, drawn, color="#1f77b4", linewidth=2, label=f"break-even ({accounting})")
    axes.fill_between(fractions, drawn, color="#1f77b4", alpha=0.12, label="saves money")
    own = f"this job: α = {scenario.spot_fraction:g}, {overhead_percent:.0f} % longer"
    axes.plot([scenario.spot_fraction], [overhead_percent], "o", color="#d62728", label=own)
    axes.set(
        xlim=(0, 1),
        ylim=(0, top),
        xlabel="share of the work done on spot (α)",
        ylabel="longer than on demand only (%)",
        title=f"How much longer may the job take? Spot {100 * scenario.spot_discount:g} % cheaper",
    )
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="upper left")
