"""The EKS stack as Terraform sees it, without a cloud: its schema, and an apply with a mocked provider."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.infra import tool

MOCKED = Path(__file__).parent / "eks.tftest.json"

pytestmark = pytest.mark.timeout(600)


def test_valid_and_applies_with_a_mocked_provider(
    stacks: dict[str, Path], terraform: Callable[..., tool.Terraform], tmp_path: Path
) -> None:
    shutil.copy(MOCKED, tmp_path)
    east = terraform(tmp_path, stacks["east"])
    east.run("validate", "-no-color")
    assert "1 passed, 0 failed" in east.run("test", "-no-color").stdout
