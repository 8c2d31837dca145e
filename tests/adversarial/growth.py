"""Measures how the processor time of a function grows with its input."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

NOISE = 0.002
"""Seconds of processor time below which a measurement says nothing about growth."""


def growth(work: Callable[[T], object], make: Callable[[int], T], length: int, *, doublings: int, tries: int) -> float:
    """How many times longer `work` takes for an input of twice the length, on average over these doublings from
    `length` on; 1 if it is too fast to be measured. Each time is the least of several tries."""
    after = _least_seconds(work, make(length << doublings), tries)
    if after < NOISE:
        return 1.0
    before = _least_seconds(work, make(length), tries)
    return float((after / max(before, NOISE / 8)) ** (1 / doublings))


def _least_seconds(work: Callable[[T], object], given: T, tries: int) -> float:
    return min(_seconds(work, given) for _ in range(tries))


def _seconds(work: Callable[[T], object], given: T) -> float:
    collects = gc.isenabled()
    gc.disable()
    try:
        began = time.thread_time()
        work(given)
        return time.thread_time() - began
    finally:
        if collects:
            gc.enable()
