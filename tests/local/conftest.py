"""The fixture of the tests of the local backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.rig import Rig


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(tmp_path, monkeypatch)
