"""`spotladder demo`. The tests of the examples run it."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest

from spotladder.cli import demo
from spotladder.errors import EnvironmentFailure


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def find(name: str) -> ModuleSpec | None:
        return None if name in ("ray", "torch") else find_spec(name)

    monkeypatch.setattr(demo, "find_spec", find)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EnvironmentFailure, match=r"needs ray, torch: pip install 'spotladder\[demo,torch\]'"):
        demo.demo(framework=demo.Framework.TORCH)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(demo.FOLDER).write_text("a file of this name")
    with pytest.raises(EnvironmentFailure, match="spotladder-demo: cannot be written: File exists; use another folder"):
        demo.demo()
