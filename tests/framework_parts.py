"""Every test with the marker `frameworks` belongs to a part of `make test-frameworks` or to a target of its own."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


def without_part(tests: list[str]) -> list[str]:
    """The tests that no target runs, of those with the marker."""
    return [test for test in tests if not any(word in test for word in _words())]


@cache
def _words() -> set[str]:
    """The words of which one is in the name of each such test: those with which the parts select their tests, and the
    files that other targets run."""
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    by_name = re.search(r"^(test-\w+ test-\w+): .*\n\t\$\(FRAMEWORKS\) -k \$\(@:test-%=%\)", makefile, re.MULTILINE)
    raytrain = re.search(r'^test-raytrain: .*\n\t\$\(FRAMEWORKS\) -k "([\w ]+)"', makefile, re.MULTILINE)
    own = re.findall(r"^test-(?:public|tracking): .*\n\t(.*)$", makefile, re.MULTILINE)
    files = re.findall(r"tests/\w+/(\w+)\.py", " ".join(own))
    assert by_name, "the parts test-torch and test-jax select their tests by their names"
    assert raytrain, "the part test-raytrain lists its words"
    assert len(own) == 2, "test-public and test-tracking name their files"
    return {name.removeprefix("test-") for name in by_name[1].split()} | set(raytrain[1].split(" or ")) | set(files)
