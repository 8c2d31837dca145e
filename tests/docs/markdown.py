"""Reads the fenced blocks of the documentation, so that tests can run its commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its location, language and text."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page that users read."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").glob("**/*.md")),
        *sorted((ROOT / "examples").glob("*/README.md")),
        *sorted((ROOT / "charts").glob("*/README.md")),
    ]


def blocks(*languages: str) -> Iterator[Block]:
    """All blocks of these languages; of all languages when none is named."""
    for page in pages():
        text = page.read_text()
        for match in _FENCE.finditer(text):
            language = match[2].strip()
            if not languages or language in languages:
                indent = match[1]
                lines = [line.removeprefix(indent) for line in match[3].splitlines()]
                yield Block(page, text.count("\n", 0, match.start()) + 1, language, "\n".join(lines) + "\n")


def commands(page: Path) -> list[str]:
    """The commands of a page's `sh` blocks in order, without comments; continued lines joined."""
    found: list[str] = []
    for block in blocks("sh"):
        if block.page == page:
            joined = block.text.replace("\\\n", " ")
            found += [line.split(" #", 1)[0].strip() for line in joined.splitlines() if line.strip() and line[0] != "#"]
    return found
