"""Makes the pictures of the README from a finished run: `make pictures`.

The run is a `make demo` whose timeline.jsonl is kept in `run/`. `python docs/images/record.py FOLDER` keeps
that of FOLDER there first. Written beside this file, and compared by a test:

- live-view.svg: the live view at one moment of the run, as today's code draws it;
- report.svg: the report's timeline and cost.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
from importlib.resources import files
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from spotladder.cli.report_table import sentences
from spotladder.core.model import (
    Instant,
    Stage,
)
from spotladder.core.reasons import Reason
from spotladder.display.picture import draw
from spotladder.display.report import RunFacts, charts, gather, timeline
from spotladder.display.report.markup import element, trusted
from spotladder.display.report.page import WIDE
from spotladder.display.view_state import RunSummary, ViewSnapshot
from spotladder.records.model import Began, Decided, Moved, Record, Specified
from spotladder.records.timeline import read

HERE = Path(__file__).parent
RUN = HERE / "run"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
BORDER = 40
"""Pixels around the report's picture."""
LETTER = 6.6
"""Approximate width of a letter of the legend, in pixels."""
COST = [
    (element("path", d="M0,6 h24", class_="curve paid"), "paid"),
    (element("path", d="M0,6 h24", class_="curve yardstick"), "the same nodes on demand"),
]
COLUMNS, LINES = 88, 26


def main() -> None:
    """Write the pictures."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    arguments.add_argument(
        "state",
        type=Path,
        nargs="?",
        metavar="STATE_FOLDER",
        help="a finished run's folder. Default: the run kept here",
    )
    asked = arguments.parse_args()
    if asked.state is not None:
        RUN.mkdir(exist_ok=True)
        shutil.copyfile(asked.state / "timeline.jsonl", RUN / "timeline.jsonl")
    (HERE / "live-view.svg").write_text(kept_live_view(), encoding="utf-8")
    (HERE / "report.svg").write_text(kept_report(), encoding="utf-8")


def kept_live_view() -> str:
    """live-view.svg, of the run that is kept."""
    records = read(RUN / "timeline.jsonl").records
    return live_view(records, telling_moment(records))


def kept_report() -> str:
    """report.svg, of the run that is kept."""
    return report_picture(gather(read(RUN / "timeline.jsonl")))


def report_picture(facts: RunFacts) -> str:
    """The upper part of the report as SVG that loads nothing: the totals, the timeline, the cost."""
    money = dict(sentences(facts))
    lines = [
        element("text", f"{facts.namespace}/{facts.job}", y=30, font_size="22", font_weight="650"),
        element(
            "text", f"steps {money['steps']} · {money['time']} · paid {money['paid']}, saved {money['saved']}", y=58
        ),
    ]
    parts, top = [*lines], 76
    for chart, legend in ((timeline.timeline(facts, WIDE), timeline.signs(facts)), (charts.cost(facts, WIDE), COST)):
        if chart is None:
            continue
        width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', str(chart))[0]
        place = f'x="0" y="{top}" width="{width}" height="{height}"'
        parts.append(trusted(str(chart).replace('class="chart"', place, 1)))
        top += int(height) + 8
        x = 0.0
        for shape, text in legend:
            sign = element("g", shape, transform=f"translate({x:.0f},{top})")
            said = element("text", text, x=f"{x + 30 if legend is COST else x + 18:.0f}", y=top + 11, class_="tick")
            parts += [sign, said]
            x += (54 if legend is COST else 42) + LETTER * len(text)
        top += 44
    style = trusted(files("spotladder.display.report").joinpath("style.css").read_text(encoding="utf-8"))
    ground = element("rect", width="100%", height="100%", rx=8, style="fill: var(--ground)")
    size = (WIDE + 2 * BORDER, top + BORDER)
    drawn = element("g", *parts, transform=f"translate({BORDER},{BORDER})")
    return str(
        element(
            "svg",
            element("style", style),
            ground,
            drawn,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {size[0]} {size[1]}",
            width=size[0],
            style=f"font: 12px {FONT}",
        )
    )


def telling_moment(records: tuple[Record, ...]) -> Instant:
    """Halfway into the last wait for capacity that did not come; without one, halfway into the last attempt."""
    starts = [record.at for record in records if isinstance(record, Moved) and record.move.target is Stage.STARTING]
    ends = [
        record.at
        for record in records
        if isinstance(record, Moved) and record.move.reason is Reason.INSUFFICIENT_CAPACITY
    ]
    end = ends[-1] if ends else records[-1].at
    return (max(start for start in starts if start <= end) + end) / 2


def live_view(records: tuple[Record, ...], at: Instant) -> str:
    """What the live view showed at that moment, as SVG that loads no font."""
    past = [record for record in records if record.at <= at]
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, height=LINES, force_terminal=True)
    console.print(draw(snapshot(past, at), RunSummary(past), COLUMNS, LINES))
    form = re.sub(r"\s*@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace("font-family: Fira Code, monospace", "font-family: Menlo, Consolas, monospace")
    return console.export_svg(title="spotladder run job.yaml --world world.yaml", code_format=form, unique_id="live")


def snapshot(past: list[Record], at: Instant) -> ViewSnapshot:
    """The state and the nodes at that moment, as the last record of a decision has them."""
    spec = next(record.spec for record in reversed(past) if isinstance(record, Began | Specified))
    newest = next(record for record in reversed(past) if isinstance(record, Decided))
    return ViewSnapshot(at, spec, newest.after or newest.state, newest.seen, "Ctrl-C drains and commits")


if __name__ == "__main__":
    main()
