"""The fixture of the tests of the local backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.rig import BackendRig


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BackendRig:
    return BackendRig(tmp_path, monkeypatch)
