"""Draws a snapshot of a job for a terminal of a given size. Marks repeat the meaning of every colour."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from spotladder.core.accounting.savings import savings, uninterrupted_usd
from spotladder.core.facts.standby import standby_ready, standby_seen
from spotladder.core.model import (
    TERMINAL,
    Attempt,
    AttemptSeen,
    CapacityType,
    Instant,
    JobState,
    Phase,
    PodPhase,
    PodRole,
    PodSeen,
    Stage,
    Tier,
)
from spotladder.core.model.gang import launched_workers
from spotladder.core.situation import READY, Situation
from spotladder.display.figures import NONE, clock, count, count_of, measure, money, paid, percent, rate, span
from spotladder.display.narrate import Tone, removal_text, tolerated
from spotladder.display.view_state import RunSummary, ViewSnapshot

WIDEST = 100
"""Maximum width in columns: a wider picture is harder to read."""

EVENTS = 8
"""Maximum number of event lines. Their space is always reserved, so that the picture keeps its height."""

NODES = 5
"""Maximum number of listed nodes. If there are more, the picture shows only their number."""

STYLE = {Tone.QUIET: "", Tone.GOOD: "cyan", Tone.CAUTION: "yellow", Tone.BAD: "bold red"}
MARK = {Tone.QUIET: "·", Tone.GOOD: "✓", Tone.CAUTION: "!", Tone.BAD: "✗"}
PHASES = {
    Phase.PENDING: ("○", "yellow"),
    Phase.RUNNING: ("●", "cyan"),
    Phase.DRAINING: ("◐", "yellow"),
    Phase.SUCCEEDED: ("✓", "cyan"),
    Phase.FAILED: ("✗", "bold red"),
    Phase.SUSPENDED: ("‖", "yellow"),
}


def draw(snapshot: ViewSnapshot, summary: RunSummary, width: int, height: int) -> RenderableType:
    """The picture, as high as the terminal allows. On a low one, rich leaves out the lines at the bottom."""
    inner = max(1, min(width, WIDEST) - 2)
    blank = Text("")
    above: list[RenderableType] = [
        _header(snapshot, summary),
        _progress(snapshot, summary, inner),
        _learning(snapshot, summary),
        blank,
        _tiers(snapshot, inner),
        *_waits(snapshot, inner),
        blank,
        _labelled("nodes", _nodes(snapshot, inner)),
        _labelled("money", _money(snapshot, inner)),
        blank,
    ]
    hint = "" if snapshot.state.stage in (*TERMINAL, Stage.SUSPENDED) else snapshot.hint
    below: list[RenderableType] = [blank, _one_line(Text(hint, style="dim"))]
    lines = len(above) + len(snapshot.spec.tiers) + len(below)
    room = height - 1 - lines  # The cursor has the last line.
    events = _events(summary, min(EVENTS, room)) if room > 0 else []
    return Constrain(Padding(Group(*above, *events, *below), (0, 1)), WIDEST)


def _waits(snapshot: ViewSnapshot, width: int) -> list[RenderableType]:
    """What the job waits for, on up to three lines."""
    if not snapshot.waits:
        return []
    lines = [snapshot.waits[at : at + width] for at in range(0, len(snapshot.waits), width)][:3]
    return [Text(""), *(_one_line(Text(line, style="yellow")) for line in lines)]


def _header(snapshot: ViewSnapshot, summary: RunSummary) -> RenderableType:
    mark, style = PHASES[snapshot.state.phase]
    grid = Table.grid(expand=True, padding=(0, 2))
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_row(
        Text(summary.job or "spotladder", style="bold"),
        Text.assemble((f"{mark} {snapshot.state.phase}", style), f"  {clock(summary.elapsed(snapshot.now))}"),
    )
    return grid


def _progress(snapshot: ViewSnapshot, summary: RunSummary, width: int) -> RenderableType:
    step, total, pace = summary.step(snapshot), summary.total(snapshot), summary.pace(snapshot.now)
    grid = Table.grid(expand=True, padding=(0, 2))
    grid.add_column(ratio=1)
    bar = ProgressBar(
        total=total or 1, completed=min(step, total), style="bright_black", complete_style="cyan", finished_style="cyan"
    )
    cells: list[RenderableType] = [bar]
    pace = pace if snapshot.state.stage in READY and step < total else None
    left = f"{span((total - step) / pace)} left" if pace else ""
    figures = [
        ("" if total else "step ") + count_of(step, total),
        percent(step / total if total else None).rjust(5),
        (rate(pace) if pace else "").rjust(12) if width >= 60 else "",
        left.rjust(12) if width >= 76 else "",
    ]
    for figure in figures:
        if figure:
            grid.add_column(justify="right", no_wrap=True)
            cells.append(Text(figure))
    grid.add_row(*cells)
    return grid


def _learning(snapshot: ViewSnapshot, summary: RunSummary) -> RenderableType:
    progress = snapshot.seen.progress
    parts = [snapshot.doing] if snapshot.doing else []
    parts += [f"loss {measure(summary.loss)}"] if summary.loss is not None else []
    if progress.committed_at is not None:
        parts.append(f"committed step {count(progress.step)}, {span(snapshot.now - progress.committed_at)} ago")
    else:
        parts.append("nothing committed yet")
    return _one_line(Text(" · ".join(parts), style="dim"))


def _tiers(snapshot: ViewSnapshot, width: int) -> RenderableType:
    state = snapshot.state
    table = Table(box=None, expand=True, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_edge=False)
    table.add_column("  tier", no_wrap=True, overflow="ellipsis", max_width=max(8, width // 4))
    if width >= 70:
        table.add_column("capacity", no_wrap=True)
    table.add_column("state", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("failures" if width >= 60 else "fail", justify="right", no_wrap=True)
    if width >= 86:
        table.add_column("attempts", justify="right", no_wrap=True)
    if width >= 44:
        table.add_column("cost", justify="right", no_wrap=True, min_width=7)
    dearest = max((record.cost for record in state.tiers), default=0.0)
    for tier in snapshot.spec.tiers:
        record = state.record(tier.name)
        current = tier.name == state.tier
        tone, text = tier_state(snapshot, tier)
        row: list[RenderableType] = [Text(f"{'▸' if current else ' '} {tier.name}", style="bold" if current else "")]
        if width >= 70:
            row.append(Text(tier.capacity_type, style="" if tier.capacity_type is CapacityType.SPOT else "magenta"))
        row += [Text(text, style=STYLE[tone] if current or tone is not Tone.QUIET else "dim")]
        row += [Text(_failures(state, tier, width))]
        if width >= 86:
            row.append(Text(str(record.attempts)))
        if width >= 44:
            row.append(
                Text(paid(record.cost, unpriced=bool(record.unpriced), like=dearest) if record.attempts else NONE)
            )
        table.add_row(*row)
    return table


def _failures(state: JobState, tier: Tier, width: int) -> str:
    """`1/3`, with the failures counted before the last reset of the count."""
    counted = state.record(tier.name).failures
    live = state.attempt
    ever = sum(attempt.failures for attempt in state.history if attempt.tier == tier.name)
    ever += live.failures if live is not None and live.tier == tier.name else 0
    earlier = f" ({ever - counted} before)" if ever > counted and width >= 60 else ""
    return f"{counted}/{tolerated(tier.max_failures)}{earlier}"


def tier_state(snapshot: ViewSnapshot, tier: Tier) -> tuple[Tone, str]:
    """The state of a tier. What the job waits for, and until when, is in `ViewSnapshot.waits`."""
    state = snapshot.state
    record = state.record(tier.name)
    if tier.name == state.tier and state.stage not in TERMINAL:
        tone, text = _current_state(snapshot)
        text += _removed(snapshot, tier)
        if state.standby.attempt is not None and state.standby.attempt.tier == tier.name:
            text += f"; {_standby_state(snapshot, state.standby.attempt)[1]}"
        return tone, text
    if tier.name == state.tier:
        ok = state.stage is Stage.SUCCEEDED
        return (Tone.GOOD, "finished here") if ok else (Tone.BAD, f"ended here: {state.reason}")
    if state.standby.attempt is not None and tier.name == state.standby.attempt.tier:
        return _standby_state(snapshot, state.standby.attempt)
    if record.exhausted_by:
        return Tone.CAUTION, f"left: {record.exhausted_by}{_removed(snapshot, tier)}"
    if removed := _removed(snapshot, tier):
        return Tone.QUIET, f"open{removed}"
    if tier.name in snapshot.seen.unavailable:
        return Tone.CAUTION, f"unavailable: {snapshot.seen.unavailable[tier.name]}"
    return Tone.QUIET, "open"


def _removed(snapshot: ViewSnapshot, tier: Tier) -> str:
    """The attempts on the tier that are being removed; "" for none."""
    text = removal_text((left for left in snapshot.state.left if left.tier == tier.name), snapshot.now)
    return text and f"; {text}"


def _standby_state(snapshot: ViewSnapshot, standby: Attempt) -> tuple[Tone, str]:
    """The state of the standby attempt, which boots beside the live one."""
    situation = Situation(snapshot.spec, snapshot.state, snapshot.seen, snapshot.now)
    if standby_ready(situation):
        return Tone.GOOD, f"attempt {standby.number} stands by"
    up = len(_up(standby_seen(situation)))
    return (
        Tone.CAUTION,
        f"attempt {standby.number} starts as standby, {up}/{launched_workers(standby, situation.spec)} up",
    )


def _current_state(snapshot: ViewSnapshot) -> tuple[Tone, str]:
    state, workers, attempt = snapshot.state, snapshot.spec.workers, snapshot.state.attempt
    seen = snapshot.seen.attempt(attempt.number) if attempt else None
    name = state.stage.lower()
    match state.stage:
        case Stage.STARTING | Stage.RECOVERING:
            return Tone.CAUTION, f"{name}, {len(_up(seen))}/{workers} up"
        case Stage.DRAINING if attempt is not None and attempt.ending.drain_by is not None:
            return Tone.CAUTION, f"{name}, killed in {span(attempt.ending.drain_by - snapshot.now)}"
        case Stage.RUNNING | Stage.REPLACING:
            size = "" if seen is None or seen.size is None else f" with {seen.size} of {workers} workers"
            return Tone.GOOD, f"{name}{size}"
    return Tone.CAUTION if attempt is not None else Tone.QUIET, name


def _workers(seen: AttemptSeen | None) -> list[PodSeen]:
    return [pod for pod in seen.pods if pod.role is PodRole.WORKER and pod.phase is not PodPhase.LOST] if seen else []


def _up(seen: AttemptSeen | None) -> list[PodSeen]:
    return [pod for pod in _workers(seen) if pod.phase is PodPhase.RUNNING]


def _nodes(snapshot: ViewSnapshot, width: int) -> Text:
    attempt = snapshot.state.attempt
    pods = _workers(snapshot.seen.attempt(attempt.number)) if attempt else []
    if not pods:
        return Text("none", style="dim")
    listed = [_node(pod, snapshot.now) for pod in pods]
    line = Text("  ").join(listed)
    if len(pods) <= NODES and line.cell_len <= width - 8 and all(pod.node for pod in pods):
        return line
    noticed = [pod for pod in pods if pod.noticed]
    up = [pod for pod in pods if pod.phase is PodPhase.RUNNING and not pod.noticed]
    wanted = [pod for pod in pods if pod.phase is PodPhase.PENDING]
    groups = [(up, "● {} up", "cyan"), (noticed, "◐ {} noticed", "yellow"), (wanted, "○ {} wanted", "dim")]
    return Text("  ").join([Text(form.format(len(group)), style=style) for group, form, style in groups if group])


def _node(pod: PodSeen, now: Instant) -> Text:
    name = pod.node or pod.uid
    if pod.noticed:
        when = f" is reclaimed in {span(pod.notice_ends_at - now)}" if pod.notice_ends_at is not None else " is noticed"
        return Text(f"◐ {name}{when}", style="yellow")
    if pod.phase is PodPhase.PENDING:
        return Text(f"○ {name}", style="dim")
    return Text.assemble(("● ", "cyan"), name)


def _money(snapshot: ViewSnapshot, width: int) -> Text:
    spent = snapshot.state.spent_usd
    uninterrupted = uninterrupted_usd(snapshot.spec, snapshot.state)
    share = savings(snapshot.spec, snapshot.state)
    text = Text.assemble(
        (paid(spent, unpriced=bool(snapshot.state.unpriced), like=uninterrupted or 0.0), "bold"), " spent"
    )
    if share is not None and uninterrupted is not None:
        text.append(f" · {percent(share)} saved", style="cyan" if share > 0 else "")
        if width >= 60:
            text.append(f" · {money(uninterrupted)} on demand", style="dim")
    if snapshot.spec.budget is not None and width >= 76:
        text.append(f" · {money(snapshot.spec.budget)} budget", style="dim")
    return text


def _events(summary: RunSummary, room: int) -> list[RenderableType]:
    newest = list(summary.events)[-room:]
    lines: list[RenderableType] = []
    for sentence in newest:
        at = (f"{clock(summary.elapsed(sentence.at))}  ", "dim")
        lines.append(_one_line(Text.assemble(at, (f"{MARK[sentence.tone]} {sentence.text}", STYLE[sentence.tone]))))
    return lines + [Text("")] * (room - len(newest))


def _labelled(label: str, content: Text) -> Text:
    return _one_line(Text.assemble((label.ljust(8), "dim"), content))


def _one_line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
