"""The list of files with tests that start Ray."""

from __future__ import annotations

from tests.conftest import RAY_FILES
from tests.docs.markdown import ROOT


def test_the_listed_ray_files_exist() -> None:
    assert [name for name in RAY_FILES if not (ROOT / name).exists()] == []
