"""Policies of other packages, found by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from spotladder.policies.registry import by_name


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        pytest.param(
            "import not_installed_here", "ModuleNotFoundError: No module named 'not_installed_here'", id="module"
        ),
        pytest.param("class Other: pass", "AttributeError: ", id="name"),
        pytest.param("class Broken:\n    def __init__(self, view): pass", "TypeError: ", id="arguments"),
    ],
)
def test_a_policy_that_cannot_be_loaded_is_an_error_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, problem: str
) -> None:
    module = f"broken_policy_{abs(hash(program))}"
    (tmp_path / f"{module}.py").write_text(program, encoding="utf-8")
    about = tmp_path / f"{module}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(f"[spotladder.policies]\nbroken = {module}:Broken\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidSpec) as refused:
        by_name("broken")
    assert f"'broken' cannot be loaded from {module}:Broken ({problem}" in str(refused.value)
