"""Tests here may be coroutines; each runs in an event loop of its own, on a stepped clock."""

from __future__ import annotations

from tests.kube.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
