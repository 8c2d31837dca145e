"""The collector is off while everything is listed, and is on again whatever happens."""

from __future__ import annotations

import gc
import weakref

import pytest

from spotladder.operator.gc_freeze import gc_frozen, gc_unfrozen


class Thing:
    """In a cycle with itself: only the collector removes it."""

    def __init__(self) -> None:
        self.itself = self


def thing() -> weakref.ref[Thing]:
    return weakref.ref(Thing())


def test_what_was_listed_is_not_looked_at_until_it_may_have_become_garbage() -> None:
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
        gc_unfrozen()
    gc.collect()
    assert listed() is None
    assert gc.get_freeze_count() <= before


def test_who_is_stopped_while_listing_leaves_the_collector_as_it_was() -> None:
    listed: list[weakref.ref[Thing]] = []

    def stopped() -> None:
        with gc_frozen():
            listed.append(thing())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert gc.isenabled()
    gc.collect()
    assert listed[0]() is None


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with gc_frozen():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
        gc_unfrozen()
