"""The core imports only the standard library, itself and modules that are as pure; no clock, randomness, logging or
IO."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import spotladder.core

CORE = Path(spotladder.core.__file__).parent
PURE = ("spotladder.backoff", "spotladder.errors", "spotladder.exit_code")
FORBIDDEN = {
    "asyncio",
    "datetime",
    "logging",
    "os",
    "pathlib",
    "random",
    "secrets",
    "socket",
    "subprocess",
    "threading",
    "time",
}


@pytest.mark.parametrize("module", sorted(CORE.rglob("*.py")), ids=lambda path: str(path.relative_to(CORE)))
def test_the_core_imports_only_the_standard_library_and_no_io(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            root = name.split(".")[0]
            ours = name.startswith("spotladder.core") or name in PURE
            assert ours or (root in sys.stdlib_module_names and root not in FORBIDDEN), f"{module.name} imports {name}"
