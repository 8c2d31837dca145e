"""The garbage collector is disabled during the initial listing and always restored afterwards."""

from __future__ import annotations

import gc
import weakref

import pytest

from spotladder.operator.gc_freeze import gc_frozen


class CyclicThing:
    """A reference cycle: only the garbage collector removes it."""

    def __init__(self) -> None:
        self.itself = self


def thing() -> weakref.ref[CyclicThing]:
    return weakref.ref(CyclicThing())


def test_listed_objects_are_exempt_from_collection_until_they_are_unfrozen() -> None:
    before = gc.get_freeze_count()
    with gc_frozen():
        assert not gc.isenabled()
        listed = thing()
    try:
        later = thing()
        gc.collect()
        assert gc.isenabled()
        assert listed() is not None
        assert later() is None
    finally:
        gc.unfreeze()
    gc.collect()
    assert listed() is None
    assert gc.get_freeze_count() <= before


def test_an_interrupted_listing_restores_the_garbage_collector() -> None:
    listed: list[weakref.ref[CyclicThing]] = []

    def stopped() -> None:
        with gc_frozen():
            listed.append(thing())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert gc.isenabled()
    gc.collect()
    assert listed[0]() is None
