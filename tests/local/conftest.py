"""The fixtures of the tests of the local backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.local.rig import BackendRig
from tests.local.run_site import RunSite


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BackendRig:
    return BackendRig(tmp_path, monkeypatch)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Callable[[str], RunSite]]:
    sites: list[RunSite] = []

    def make(name: str) -> RunSite:
        sites.append(RunSite(tmp_path / name, name))
        return sites[-1]

    yield make
    for each in sites:
        each.close()
