"""Writes drafts as YAML with their comments.

A comment is put into the mapping as an entry with an unmistakable key and becomes a comment in the text. The YAML
library's own comments depend on neighbouring fields that a conversion moves and removes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from spotladder.api.scalars import meaning
from spotladder.conversion.draft import Draft, Note

_WIDTH = 110
_NARROWEST = 40
_AMBIGUOUS = re.compile(r"[-+.~=<0-9]")


def text_of(drafts: Iterable[Draft], heading: Sequence[str]) -> str:
    """A YAML file with the jobs. `heading` are the comments about the whole file."""
    documents = [_document(draft) for draft in drafts]
    return "".join([*_comment(heading, ""), "---\n".join(documents)])


def _document(draft: Draft) -> str:
    words = repr(draft.job)
    mark = "comment"
    while mark in words:
        mark += "-"
    job = _copied(draft.job)
    texts: list[str] = []
    for note in draft.notes:
        _insert(job, note, f"{mark}{len(texts)}")
        texts.append(note.text)
    writer = YAML(pure=True)
    writer.default_flow_style = False
    writer.allow_unicode = True
    writer.width = 4096  # Long lines are commands, which folding makes hard to read.
    out = StringIO()
    writer.dump(job, out)
    return "".join([*_comment(draft.heading, ""), *_commented(out.getvalue(), mark, texts)])


def _copied(value: Any) -> Any:
    """A deep copy in which every text is written so that all YAML parsers read the same text."""
    if isinstance(value, dict):
        return {_copied(key): _copied(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copied(inner) for inner in value]
    if not isinstance(value, str):
        return value
    if "\n" in value:
        return LiteralScalarString(value) if _is_literal(value) else DoubleQuotedScalarString(value)
    return DoubleQuotedScalarString(value) if _is_ambiguous(value) else value


def _is_literal(text: str) -> bool:
    """Whether a literal block has this text: its lines end without blanks, the first begins without one."""
    lines = text.split("\n")
    fits = all(line == line.rstrip() and (line.isprintable() or not line) for line in lines)
    return fits and bool(lines[0]) and not lines[0].startswith(" ")


def _is_ambiguous(text: str) -> bool:
    try:
        return not isinstance(meaning(text), str) or _AMBIGUOUS.match(text) is not None
    except ValueError:
        return True


def _insert(job: dict[str, Any], note: Note, marker: str) -> None:
    """Put the marker before the note's field, or in its former place; if its mapping is gone, into the nearest one."""
    mapping = job
    anchors: tuple[str, ...] = (str(note.at[0]),)
    value: Any = job
    for depth, part in enumerate(note.at):
        if isinstance(value, dict) and value:
            mapping, anchors = value, (str(part), *(note.following[depth] if note.following else ()))
            if part not in value:
                break
            value = value[part]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            break
    entries = list(mapping.items())
    position = next((index for index, (key, _) in enumerate(entries) if key in anchors), len(entries))
    entries.insert(position, (marker, None))
    mapping.clear()
    mapping.update(entries)


def _commented(text: str, mark: str, texts: Sequence[str]) -> list[str]:
    """The lines of the text, with comments for the markers."""
    marker = re.compile(rf"(\s*)((?:- )*){re.escape(mark)}([0-9]+):\n")
    result: list[str] = []
    dashes = ""
    for line in text.splitlines(keepends=True):
        if dashes:  # The first entry of a list's item was a marker: the next line begins the item.
            indent = len(line) - len(line.lstrip())
            line = f"{line[: indent - len(dashes)]}{dashes}{line[indent:]}"  # noqa: PLW2901
            dashes = ""
        if match := marker.fullmatch(line):
            result += _comment([texts[int(match[3])]], match[1])
            dashes = match[2]
        else:
            result.append(line)
    return result


def _comment(texts: Iterable[str], indent: str) -> list[str]:
    width = max(_NARROWEST, _WIDTH - len(indent))
    return [
        f"{indent}# {line}\n"
        for text in texts
        for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    ]
