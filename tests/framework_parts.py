"""Every test with the marker `frameworks` belongs to a part of `make test-frameworks` or to a target of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Part:
    """The tests of one command: those in its files and folders that have one of the words in their name, or all."""

    places: list[str]
    words: list[str]

    def runs(self, test: str) -> bool:
        file = test.partition("::")[0]
        placed = any(fnmatch(file, place) or file.startswith(f"{place}/") for place in self.places)
        return placed and (not self.words or any(word in test for word in self.words))


def without_part(tests: list[str]) -> list[str]:
    """The tests that no target runs, of those with the marker."""
    return [test for test in tests if not any(part.runs(test) for part in _parts())]


@cache
def _parts() -> list[Part]:
    """The commands of the Makefile that run tests with the marker."""
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    found = []
    for targets, recipe in re.findall(r"^(test-[\w -]+):.*\n((?:\t.*\n)+)", makefile, re.MULTILINE):
        for name in (target.removeprefix("test-") for target in targets.split()):
            commands = re.sub(r"\$\(@:test-%=(.*?)\)", lambda own, name=name: own[1].replace("%", name), recipe)  # type: ignore[misc]
            for command in re.findall(r".*(?:\$\(FRAMEWORKS\)|-m frameworks).*", commands):
                words = re.search(r'-k (?:"([\w ]+)"|(\w+))', command)
                chosen = (words[1] or words[2]).split(" or ") if words else []
                found.append(Part(re.findall(r"tests/[\w/*.]+", command), chosen))
    assert found, "the Makefile has commands for the tests with the marker"
    return found
