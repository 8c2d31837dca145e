"""Each environment variable of spotladder is spelled in one module."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"SPOTLADDER_[A-Z_]*")


def test_the_name_of_each_environment_variable_is_spelled_in_one_module() -> None:
    modules: dict[str, set[str]] = defaultdict(set)
    for file in (*ROOT.glob("controller/**/*.py"), *ROOT.glob("infra/**/*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
                modules[node.value].add(str(file.relative_to(ROOT)))
    assert "SPOTLADDER_JOB" in modules
    assert {name: sorted(files) for name, files in modules.items() if len(files) > 1} == {}
