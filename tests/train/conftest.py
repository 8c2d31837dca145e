"""What several files of tests need: no waiting, and one Ray cluster, because starting Ray takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.train import notice, rendezvous
from tests.train.machine import RayMachines


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of tests are shorter than the intervals at which ranks look for notices and for rank 0."""
    monkeypatch.setattr(notice, "FILE_POLL_INTERVAL", 0.0)
    monkeypatch.setattr(rendezvous, "RETRY_INTERVAL", 0.01)


@pytest.fixture
def rayreports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, without Ray's own part of a report."""
    from pyarrow.fs import LocalFileSystem
    from ray.train.v2._internal.execution.train_fn_utils import DistributedTrainFnUtils

    from spotladder.train import rayreports

    storage = SimpleNamespace(experiment_fs_path=str(tmp_path), storage_filesystem=LocalFileSystem())
    monkeypatch.setattr(DistributedTrainFnUtils, "report", lambda *_, **__: None)
    monkeypatch.setattr(rayreports, "get_train_context", lambda: SimpleNamespace(get_storage=lambda: storage))
    return rayreports


@pytest.fixture(scope="package")
def shared_machine() -> Iterator[RayMachines]:
    machine = RayMachines()
    try:
        yield machine
    finally:
        machine.close()


@pytest.fixture
def machine(shared_machine: RayMachines) -> Iterator[RayMachines]:
    try:
        yield shared_machine
    finally:
        shared_machine.stop_drivers()
