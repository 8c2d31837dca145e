"""Every test with the marker `frameworks` belongs to a part of `make test-frameworks` or to a target of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def words() -> set[str]:
    """The words with which the parts of test-frameworks select their tests."""
    makefile = (ROOT / "Makefile").read_text()
    by_name = re.search(r"^(test-\w+ test-\w+): .*\n\t\$\(FRAMEWORKS\) -k \$\(@:test-%=%\)", makefile, re.MULTILINE)
    raytrain = re.search(r'^test-raytrain: .*\n\t\$\(FRAMEWORKS\) -k "([\w ]+)"', makefile, re.MULTILINE)
    own = re.findall(r"^test-(?:public|tracking): .*\n\t(.*)$", makefile, re.MULTILINE)
    files = re.findall(r"tests/frameworks/(\w+)\.py", " ".join(own))
    assert by_name, "the parts test-torch and test-jax select their tests by their names"
    assert raytrain, "the part test-raytrain lists its words"
    assert len(own) == 2, "test-public and test-tracking name their files"
    return {name.removeprefix("test-") for name in by_name[1].split()} | set(raytrain[1].split(" or ")) | set(files)


def test_every_test_of_a_framework_belongs_to_a_part() -> None:
    folders = ["tests/train", "tests/frameworks", "tests/examples"]
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-n", "0", "-m", "frameworks", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    tests = [line for line in listed if "::" in line]
    assert any("raytrain" in test for test in tests)
    assert [test for test in tests if not any(word in test for word in words())] == []
