"""One Ray cluster for all tests that need one, because starting Ray takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.train.machine import RayMachines


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
