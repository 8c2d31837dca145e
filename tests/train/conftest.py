"""Fixtures of the tests that need a real Ray: one for all of them, since a start takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.train.machine import Machine


@pytest.fixture(scope="package")
def whole_machine() -> Iterator[Machine]:
    machine = Machine()
    try:
        yield machine
    finally:
        machine.close()


@pytest.fixture
def machine(whole_machine: Machine) -> Iterator[Machine]:
    try:
        yield whole_machine
    finally:
        whole_machine.stop_drivers()
