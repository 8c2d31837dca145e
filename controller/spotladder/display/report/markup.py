"""Elements of HTML and SVG whose text is always escaped, so that names from users cannot become markup.

No library replaces it. Jinja2 with MarkupSafe, htpy and the standard library's ElementTree escape `<`, `&` and quotes,
but keep control characters and the marks that change the direction of text (`UNSAFE`), so every text would need a
second filter. All but ElementTree would also add a dependency to the base install.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, unpaired surrogates, and marks that change the direction of text."""

VOID = frozenset({"br", "hr", "input", "link", "meta"})


class Markup(str):
    """Text that is markup already. Only `element` and `join` create it."""

    __slots__ = ()


def element(name: str, /, *children: str | None, **attributes: object) -> Markup:
    """`<name attributes>children</name>`. Attributes that are None or False are left out. `class_` becomes `class`;
    other underscores in a name become hyphens."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(_number(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str | None) -> Markup:
    """The children, concatenated; plain text is escaped."""
    return Markup("".join(each if isinstance(each, Markup) else _escaped(each) for each in children if each))


def trusted(text: str) -> Markup:
    """Trusted constant text that is markup: the style sheet, the document type."""
    return Markup(text)


def bar(name: str, share: float, value: str, *, paid: bool = True) -> Markup:
    """A row of a bar chart: its name, a bar over this share of the width, and its value."""
    drawn = element("div", class_="bar paid" if paid else "bar", style=f"width:{share * 100:.2f}%")
    return element(
        "div",
        element("div", name),
        element("div", drawn, class_="track"),
        element("div", value, class_="n"),
        class_="row",
    )


def _number(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _escaped(text: str) -> str:
    return html.escape(UNSAFE.sub("\ufffd", text), quote=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> Markup:
    """A table that scrolls on a narrow page. All columns have numbers, but those at the positions `left`."""

    def kind(index: int) -> str | None:
        return "n" if index not in left else "text" if index == len(columns) - 1 else None

    head = element("tr", *[element("th", name, class_=kind(index), scope="col") for index, name in enumerate(columns)])
    body = [element("tr", *[element("td", text, class_=kind(index)) for index, text in enumerate(row)]) for row in rows]
    return element(
        "div", element("table", element("thead", head), element("tbody", *body)), class_="scroll", tabindex="0"
    )
