"""The rules of .gitignore and .rayignore files: gitignore(5), without rules outside the folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FILES = (".gitignore", ".rayignore")

_TOKEN = re.compile(r"(?:^|(?<=/))\*\*/|/\*\*$|\*+|\?|\\.|\[[!^]?\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*\]|.", re.DOTALL)
_MEMBER = re.compile(r"\[:([a-z]+):\]|\\?(.)", re.DOTALL)

_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "lower": "a-z",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
"""The character classes that names of files may need, as in `[[:digit:]]`."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line of a file in `folder`. `pattern` matches paths relative to it."""

    folder: Path
    pattern: re.Pattern[str]
    excludes: bool
    only_folders: bool


class Ignored:
    """The rules that have been read so far: those of a folder after those of the folders around it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rules: list[_Rule] = []

    def read(self, folder: Path) -> None:
        """Add the rules of the files in this folder."""
        for name in FILES:
            file = folder / name
            if file.is_file():
                lines = file.read_bytes().decode("utf-8-sig", errors="replace").split("\n")
                self._rules += [rule for line in lines if (rule := _rule(folder, line)) is not None]

    def matches(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the last rule that matches excludes this path. Files below an excluded folder are not asked for."""
        for rule in reversed(self._rules):
            applies = (is_folder or not rule.only_folders) and path.is_relative_to(rule.folder)
            if applies and rule.pattern.fullmatch(path.relative_to(rule.folder).as_posix()):
                return rule.excludes
        return False


def _rule(folder: Path, line: str) -> _Rule | None:
    line = re.sub(r"(?<!\\) +$", "", line.removesuffix("\r"))
    excludes = not line.startswith("!")
    text = line if excludes else line[1:]
    only_folders, text = text.endswith("/"), text.removesuffix("/")
    if not text or line.startswith("#"):
        return None
    anywhere = "/" not in text
    try:
        pattern = _expression(text.removeprefix("/"))
        return _Rule(folder, re.compile(f"(?:.*/)?{pattern}" if anywhere else pattern), excludes, only_folders)
    except (KeyError, re.error):  # An unknown class, or a range such as [9-0].
        return None


def _expression(glob: str) -> str:
    """The regular expression of a pattern; `*`, `?` and `[…]` match no slash, `**` any number of folders."""
    return "".join(_one(token) for token in _TOKEN.findall(glob))


def _one(token: str) -> str:
    match token:
        case "**/":
            return "(?:.*/)?"
        case "/**":
            return "/.+"
        case "?":
            return "[^/]"
        case "[":
            return "(?!)"  # A class without an end matches nothing.
        case _ if token.startswith("*"):
            return "[^/]*"
        case _ if token.startswith("\\") and len(token) > 1:
            return re.escape(token[1])
        case _ if token.startswith("["):
            negated = token[1] in "!^"
            return f"(?!/)[{'^' * negated}{_MEMBER.sub(_member, token[1 + negated : -1])}]"
        case _:
            return re.escape(token)


def _member(found: re.Match[str]) -> str:
    """A character, a class or the hyphen of a range, as in a regular expression."""
    return _CLASSES[found[1]] if found[1] else "-" if found[0] == "-" else re.escape(found[2])
