"""What every report is checked against: the schema of its JSON, and a strict parser of its page."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema

from spotladder.display import report
from spotladder.display.report import gather
from spotladder.display.report.facts import RunFacts
from spotladder.records.recorded import Recorded
from tests.display.builders import PlayedRun

SCHEMA = json.loads((Path(report.__file__).parent / "schema.json").read_text(encoding="utf-8"))


def recorded(run: PlayedRun) -> Recorded:
    """The records of a run."""
    return Recorded(tuple(run.records))


def facts_of(run: PlayedRun) -> RunFacts:
    return gather(recorded(run))


def check_json(text: str) -> dict[str, Any]:
    """Assert that the text matches the schema. Returns its value."""
    value: dict[str, Any] = json.loads(text)
    jsonschema.validate(value, SCHEMA)
    return value


class StrictPage(HTMLParser):
    """A strict parser: every element is closed in order, and no resource is loaded and no script is run."""

    VOID = frozenset({"meta", "br", "hr"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.names: set[str] = set()
        self.text: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"a handler on {tag}"
            assert name not in {"src", "href", "xlink:href", "srcset", "action"}, f"{tag} loads {value}"
            assert "url(" not in (value or "")
            if name != "title":  # other attributes have coordinates and fixed names
                assert "nan" not in (value or "").lower().split(","), f"{tag} {name}={value}"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> out of turn"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def check_page(text: str) -> StrictPage:
    parsed = StrictPage()
    parsed.feed(text)
    parsed.close()
    assert parsed.open == []
    assert not parsed.names & {"script", "link", "iframe", "img", "object", "embed", "form", "base", "image", "use"}
    assert "http://" not in text
    assert "https://" not in text
    assert "@import" not in text
    assert "url(" not in text
    return parsed
