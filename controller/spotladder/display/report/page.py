"""report.html: one file without external resources or scripts, for desktop, phone and paper, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from time import gmtime, strftime

from spotladder.core.contract import ExitCode
from spotladder.core.reasons import Reason
from spotladder.display.figures import NONE, clock, count, hours, money, numbered, paid, percent, saved, span
from spotladder.display.narrate import tolerated
from spotladder.display.report import charts
from spotladder.display.report.facts import RunFacts
from spotladder.display.report.markup import Markup, bar, element, join, table, trusted
from spotladder.display.report.plan import sentences
from spotladder.display.report.restart_parts import where_restarts_go
from spotladder.display.report.timeline import signs, timeline

WIDE, NARROW = 940, 360
"""Widths of each chart in pixels. The style sheet shows the widest one that fits, so that text keeps its size."""

SAME_NODES, UNINTERRUPTED = "the same nodes on demand", "on-demand, uninterrupted"
"""The costs beside the paid one."""

STORY_SHOWN = 60
"""Number of events above which the list is folded."""

ATTEMPT_COLUMNS = (
    *("attempt", "tier", "began", "lasted", "steps", "committed", "recomputed", "overhead", "failures", "cost"),
    "ended by",
)
TIER_COLUMNS = (
    *("tier", "capacity", "failures", "attempts", "node-hours", "per node-hour", "cost", "saved"),
    "left or ended by",
)


def page(facts: RunFacts) -> str:
    """The whole page."""
    return document(f"{title_of(facts)} – spotladder report", element("main", sections(facts)))


def title_of(facts: RunFacts) -> str:
    """The name of the job, with its namespace."""
    return f"{facts.namespace}/{facts.job}"


def sections(facts: RunFacts, now: Markup | None = None) -> Markup:
    """What the page shows of the job, without the frame of the document. `now` comes after its first figures."""
    return join(
        _header(facts, title_of(facts)),
        now,
        _timeline(facts),
        _time(facts),
        where_restarts_go(facts),
        _loss(facts),
        _cost(facts),
        _plan(facts),
        _attempts(facts),
        _tiers(facts),
        _output(facts),
        _events(facts),
        _footer(facts),
    )


def document(title: str, *body: Markup, head: Markup | None = None) -> str:
    """An HTML document with the style sheet of the report, and `head` after it."""
    style = trusted(files(__package__).joinpath("style.css").read_text(encoding="utf-8"))
    inside = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", style),
        head,
    )
    return f"<!doctype html>\n{element('html', inside, element('body', *body), lang='en')}\n"


def _header(facts: RunFacts, title: str) -> Markup:
    tone, word = _verdict(facts)
    counts = f"{numbered(len(facts.attempts), 'attempt')}, {numbered(facts.failures, 'failure')}"
    sentence = f" in {span(facts.time.total)}, {counts}"
    reason = " – ".join(filter(None, ("" if word == facts.reason else str(facts.reason), facts.message)))
    detail = "" if facts.exit_code in (0, ExitCode.INTERRUPTED) or facts.going_on else f": {reason}"
    return element(
        "header",
        element("h1", title),
        element("p", element("span", word, class_=f"badge {tone}"), sentence, detail, class_="verdict"),
        figures(*((*each, "") for each in _figures(facts))),
    )


def figures(*shown: tuple[str, str, str, str], id_: str | None = None) -> Markup:
    """The figures that a page begins with: the name, the value, a note and the tone of each."""
    return element(
        "dl",
        *(
            element(
                "div",
                element("dt", name),
                element("dd", value, element("small", note) if note else None, class_=f"tone-{tone}" if tone else None),
                class_="figure",
            )
            for name, value, note, tone in shown
        ),
        class_="figures",
        id_=id_,
    )


def _figures(facts: RunFacts) -> list[tuple[str, str, str]]:
    uninterrupted = facts.uninterrupted
    share = facts.saved if uninterrupted is None else saved(facts.spent, uninterrupted)
    against = SAME_NODES if uninterrupted is None else UNINTERRUPTED
    done = f"of {count(facts.total)}, " if facts.total else ""
    return [
        ("steps", count(facts.steps), f"{done}{count(facts.recomputed)} recomputed"),
        ("goodput", percent(facts.time.goodput), "of the time was spent on new steps"),
        ("paid", *_paid(facts)),
        (
            "extra cost" if share is not None and share < 0 else "saved",
            percent(None if share is None else abs(share)),
            f"against {against}",
        ),
    ]


def _paid(facts: RunFacts) -> tuple[str, str]:
    used, extra = f"{hours(facts.node_hours)} node-hours", facts.state.extra.total
    if extra:
        used += f", and {money(extra)} for heads, storage and egress"
    if facts.unpriced:
        used += f"; no price is known for {', '.join(facts.unpriced)}"
    return paid(facts.spent, unpriced=bool(facts.unpriced)), used


def _verdict(facts: RunFacts) -> tuple[str, str]:
    if facts.going_on:
        return "caution", str(facts.state.phase)
    if facts.exit_code is None:
        return "caution", "Broken off"
    if facts.exit_code == 0:
        return "good", "Succeeded"
    return ("caution", "Interrupted") if facts.reason is Reason.INTERRUPTED else ("bad", "Failed")


def _timeline(facts: RunFacts) -> Markup:
    items = [
        element("li", element("svg", shape, viewBox="0 0 12 12", aria_hidden="true"), text)
        for shape, text in signs(facts)
    ]
    return element("section", element("h2", "Timeline"), _drawn(facts, timeline), element("ul", *items, class_="key"))


def _time(facts: RunFacts) -> Markup | None:
    use, total = facts.time, facts.time.total
    if total <= 0:
        return None
    parts = [
        ("new", "new steps", use.new),
        ("recomputed", "recomputed steps", use.recomputed),
        ("waiting", "waiting for capacity", use.waiting),
        ("starting", "starting up", use.starting),
        ("handover", "draining and ending", use.handover),
        ("idle", "idle", use.idle),
    ]
    present = [(name, text, seconds) for name, text, seconds in parts if seconds > 0]
    shares = [
        element("span", class_=f"u-{name}", style=f"flex:{seconds / total:.4f}", title=f"{text}: {span(seconds)}")
        for name, text, seconds in present
    ]
    key = [
        element(
            "li",
            element("i", class_=f"u-{name}"),
            text,
            " ",
            element("b", f"{span(seconds)} · {percent(seconds / total)}"),
        )
        for name, text, seconds in present
    ]
    restarts = [attempt.overhead for attempt in facts.attempts[1:] if attempt.overhead is not None]
    note = ""
    if restarts:
        mean = sum(restarts) / len(restarts)
        note = (
            f"A restart cost {span(mean)} on average, from the last new step before it to the first new step after it."
        )
    return element(
        "section",
        element("h2", "Use of time"),
        element("div", *shares, class_="use", role="img", aria_label="Shares of the run's time"),
        element("ul", *key, class_="key"),
        element("p", note, class_="note") if note else None,
    )


def _loss(facts: RunFacts) -> Markup | None:
    if charts.loss(facts, WIDE) is None:
        return None
    note = "A dot is the first loss that an attempt reported. Colours as in the timeline."
    return element("section", element("h2", "Loss"), _drawn(facts, charts.loss), element("p", note, class_="note"))


def _cost(facts: RunFacts) -> Markup | None:
    if facts.on_demand <= 0 or facts.unpriced:
        return None
    costs = {"paid": facts.spent, UNINTERRUPTED: facts.uninterrupted, SAME_NODES: facts.on_demand}
    known = {name: usd for name, usd in costs.items() if usd is not None}
    dearest = max(known.values()) or 1.0
    bars = [bar(name, usd / dearest, money(usd, dearest), paid=name == "paid") for name, usd in known.items()]
    return element(
        "section",
        element("h2", "Cost"),
        element("div", *bars, class_="bars"),
        _drawn(facts, charts.cost),
        element("ul", _line("paid", "paid"), _line("yardstick", SAME_NODES), class_="key"),
    )


def _plan(facts: RunFacts) -> Markup | None:
    if facts.plan is None:
        return None
    return element("section", element("h2", "Plan"), *(element("p", text) for text in sentences(facts.plan)))


def _line(kind: str, text: str) -> Markup:
    stroke = element("path", d="M0,6 h24", class_=f"curve {kind}")
    return element("li", element("svg", stroke, viewBox="0 0 24 12", class_="long", aria_hidden="true"), text)


def _attempts(facts: RunFacts) -> Markup:
    dearest = max((attempt.cost for attempt in facts.attempts), default=0.0)
    rows = [
        (
            str(each.number),
            each.tier,
            clock(each.start),
            span(each.end - each.start),
            f"{count(each.start_step)} → {count(each.end_step)}",
            count(each.committed_step),
            count(each.recomputed),
            span(each.overhead),
            str(each.failures),
            money(each.cost, dearest),
            " – ".join(filter(None, (facts.ended_by(each), each.message))),
        )
        for each in facts.attempts
    ]
    return element("section", element("h2", "Attempts"), table(ATTEMPT_COLUMNS, rows, left=(1, 10)))


def _tiers(facts: RunFacts) -> Markup:
    dearest = max((record.cost for _, record in facts.tiers), default=0.0)
    rows = [
        (
            tier.name,
            str(tier.capacity_type),
            f"{record.failures}/{tolerated(tier.max_failures)}",
            str(record.attempts),
            f"{record.node_seconds / 3600:.4f}",
            money(tier.price.per_node_hour if tier.price.known else None),
            paid(record.cost, unpriced=bool(record.unpriced), like=dearest),
            percent(None if record.unpriced else saved(record.cost, record.on_demand_cost)),
            str(record.exhausted_by or record.last_reason or NONE),
        )
        for tier, record in facts.tiers
    ]
    return element("section", element("h2", "Tiers"), table(TIER_COLUMNS, rows, left=(0, 1, 8)))


def _events(facts: RunFacts) -> Markup:
    lines = [
        element("li", element("time", clock(at)), element("span", sentence.text, class_=f"tone-{sentence.tone}"))
        for at, sentence in facts.events
    ]
    listed: Markup = element("ol", *lines, class_="events")
    if len(lines) > STORY_SHOWN:
        listed = element("details", element("summary", f"{count(len(lines))} events"), listed)
    return element("section", element("h2", "What happened"), listed)


def _output(facts: RunFacts) -> Markup:
    """The last lines of each attempt's programs, folded."""
    parts = [
        element(
            "details",
            element("summary", f"attempt {number}, {source}"),
            element("pre", element("code", "\n".join(lines))),
        )
        for number, source, lines in facts.printed
    ]
    return element("section", element("h2", "Last output"), *parts) if parts else join()


def _footer(facts: RunFacts) -> Markup:
    began = strftime("%Y-%m-%d %H:%M:%S UTC", gmtime(facts.began_at))
    parts = [f"Started {began}. All times are in hours:minutes:seconds of the run."]
    if facts.sessions > 1:
        away = sum(length for _, length in facts.breaks)
        parts.append(
            f"It was interrupted and resumed {facts.sessions - 1}×; the {span(away)} without a runner are left out."
        )
    if facts.damaged:
        parts.append(f"{numbered(facts.damaged, 'line')} of the timeline could not be read.")
    parts += facts.gaps
    parts.append("The same numbers are in report.json.")
    return element("footer", element("p", " ".join(parts)))


def _drawn(facts: RunFacts, chart: Callable[[RunFacts, int], Markup | None]) -> Markup:
    wide, narrow = chart(facts, WIDE), chart(facts, NARROW)
    return join(element("div", wide, class_="wide"), element("div", narrow, class_="narrow"))
