"""Makes the pictures of the README from a finished run: `python docs/images/record.py STATE_FOLDER`.

STATE_FOLDER holds the run's timeline.jsonl and state.json. Written beside this file:

- live-view.svg: the live view at one moment of the run, drawn by the code that drew it then;
- report.png: the upper part of the report's page, when Chromium is installed.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from spotladder.core.codec import load_state
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    Instant,
    JobState,
    Observation,
    PodPhase,
    PodSeen,
    Progress,
    Stage,
    TierRecord,
)
from spotladder.core.reasons import Reason
from spotladder.story.picture import draw
from spotladder.story.report import gather
from spotladder.story.report.page import page
from spotladder.story.timeline import (
    Began,
    Billed,
    Committed,
    Lost,
    Moved,
    NodeChange,
    NodeChanged,
    Record,
    read,
)
from spotladder.story.view import Heard, ViewSnapshot

HERE = Path(__file__).parent
LEFT_FOR_GOOD = (Reason.MAX_FAILURES_EXCEEDED, Reason.INSUFFICIENT_CAPACITY)
BROWSER = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
SIZE = (1040, 900)
COLUMNS, LINES = 88, 26


def main() -> None:
    """Write the pictures."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    arguments.add_argument("state", type=Path, metavar="STATE_FOLDER", help="a finished run's folder")
    arguments.add_argument("--at", type=float, metavar="SECONDS", help="the moment of the live view")
    asked = arguments.parse_args()
    recorded = read(asked.state / "timeline.jsonl")
    state = load_state((asked.state / "state.json").read_text(encoding="utf-8"))
    start = recorded.records[0].at
    at = start + asked.at if asked.at is not None else telling_moment(recorded.records)
    (HERE / "live-view.svg").write_text(live_view(recorded.records, at), encoding="utf-8")
    screenshot(page(gather(recorded, state)), HERE / "report.png")


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
    heard = Heard()
    past = [record for record in records if record.at <= at]
    for record in past:
        heard.hear(record)
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, height=LINES, force_terminal=True)
    console.print(draw(snapshot(past, at), heard, COLUMNS, LINES))
    form = re.sub(r"\s*@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace("font-family: Fira Code, monospace", "font-family: Menlo, Consolas, monospace")
    return console.export_svg(title="spotladder run job.yaml --world world.yaml", code_format=form, unique_id="live")


def snapshot(past: list[Record], at: Instant) -> ViewSnapshot:
    """The state and the nodes of that moment, as far as the timeline tells them."""
    state, progress, pods = JobState(), Progress(), dict[str, PodSeen]()
    spec = next(record.spec for record in past if isinstance(record, Began))
    spent, on_demand, payer = 0.0, 0.0, ""
    for record in past:
        here = state.record(state.tier)
        match record:
            case Began():
                spec = record.spec
            case Moved(move=move):
                state = replace(state, stage=move.target, reason=move.reason)
                if move.target is Stage.STARTING:
                    pods.clear()
                    live = Attempt(move.attempt, move.tier, record.at)
                    state = replace(state, attempt=live, tier=move.tier, waiting_since=record.at)
                    here = state.record(move.tier)
                    state = with_tier(state, replace(here, attempts=here.attempts + 1))
                elif move.target is Stage.RECOVERING:
                    state = replace(state, waiting_since=record.at, recovering_since=record.at)
                elif move.reason in LEFT_FOR_GOOD:
                    state = with_tier(state, replace(here, spent=move.reason))
            case Lost():
                state = with_tier(state, replace(here, failures=record.failures))
            case Billed():
                bill = state.record(payer)
                cost, yardstick = bill.cost + record.spent - spent, bill.on_demand_cost + record.on_demand - on_demand
                state = with_tier(state, replace(bill, cost=cost, on_demand_cost=yardstick))
                spent, on_demand, payer = record.spent, record.on_demand, state.tier
            case Committed():
                progress = Progress(record.step, record.total, record.at, record.attempt)
            case NodeChanged():
                pods[record.node] = pod(record)
    attempts = (AttemptSeen(state.attempt.number, tuple(pods.values())),) if state.attempt else ()
    return ViewSnapshot(at, spec, state, Observation(1, attempts, progress), "Ctrl-C drains and commits")


def with_tier(state: JobState, tier: TierRecord) -> JobState:
    """The state with that tier's record."""
    others = tuple(known for known in state.tiers if known.name != tier.name)
    return replace(state, tiers=(*others, tier))


def pod(record: NodeChanged) -> PodSeen:
    """The node as it was seen after the change."""
    phases = {NodeChange.ASKED: PodPhase.PENDING, NodeChange.GONE: PodPhase.LOST}
    noticed = record.change is NodeChange.NOTICED
    phase = phases.get(record.change, PodPhase.RUNNING)
    return PodSeen(record.node, phase=phase, node=record.node, noticed=noticed, notice_ends_at=record.until)


def screenshot(text: str, path: Path) -> None:
    """The page in Chromium, without a window; not made where there is none."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.stderr.write("no Chromium found: report.png is not made\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "report.html").write_text(text, encoding="utf-8")
        command = [browser, *BROWSER, "--hide-scrollbars", f"--user-data-dir={folder}/profile"]
        command += [f"--window-size={SIZE[0]},{SIZE[1]}", f"--screenshot={path}", f"file://{folder}/report.html"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
