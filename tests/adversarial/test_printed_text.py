"""A program chooses what it prints. Whatever it prints, every parser of it takes time in proportion to its length."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial

import pytest

from spotladder.output.last_error import last_error, last_lines, plain
from spotladder.output.outage import last_reported
from spotladder.output.redact import redacted

LENGTH = 4_096
"""Characters of the smaller input. A quadratic search takes tens of milliseconds for it, a linear one a few."""

PIECES = (
    "-eyJ", "eyJ", ".eyJ", "eyJaaaaaaaa.", "eyJaaaaaaaa-", "eyJaaaaaaaa.bbbbbbbb", "a.", "a-", "_", "a", "1", " ",
    "\n", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN A PRIVATE KEY----", "-----END A",
    "-----END PRIVATE ", "PRIVATE KEY", "AKIA", "AKIAAAAAAAAA", "ghp_", "ghp_aaaa", "hf_", "github_pat_", "xoxb-",
    "xoxb-a", "sk-", "-sk-", "sk-a", "sk_live_", "rk_test_a", "AIza", "ya29.", "-ya29.", "glpat-", "sig=", "?sig=",
    "&sig", "://", "://a", "://a:", "://a:b", ":a", "authorization", "authorization=", "authorization: bearer ",
    "authorization:\n", "bearer ", "bearer a", "secret", "secret.", "secret=", 'secret="', "secret='", "secret ",
    "secret\n", "a.secret.a", "password:", "api_key", "token", "token=", "token=1", "token=1,", "token ",
    "tokentoken", "token.", "credential", "0123456789abcdef", "\x1b", "\x1b[", "\x1b]", "\x1b[0", "\x1b]0;a", "\r",
    "\r\n", "(pid=1", "(a pid=1, ip=", "( pid=", "(", "[repeated 1x", " [repeated 1x across cluster]", "| ",
    '  File "', '  File "a", line 1\n', "Traceback (most recent call last):", "Traceback (most recent call last):\n",
    "spotladder: ", "spotladder: a (exit code ", "Error:\n",
    "the checkpoint store does not answer since 2026-01-01T00:00:00Z (1 s); ",
    "the checkpoint store does not answer since 2026-01-01T00:00:00Z (1 s); a: b",
    "the checkpoint store answers again", "the checkpoint store does not answer since ",
)  # fmt: skip
"""What an adversary repeats: beginnings of everything that is searched for, which then does not follow."""

INPUTS = (
    *((piece, piece) for piece in PIECES),
    *((f"{first}{second}", second) for first in PIECES for second in (" ", "a", "\n") if len(first) > 1),
)  # fmt: skip
"""The beginning of an input and what follows until its end."""


LIMIT = 2.5
"""How many times longer an input of twice the length may take."""

PARSERS: dict[str, Callable[[str], object]] = {
    "redacted": redacted,
    "plain": plain,
    "last_error": last_error,
    "last_lines": last_lines,
    "last_reported": last_reported,
}


NOISE = 0.002
"""Seconds of processor time below which a measurement says nothing about growth."""


def growth(work: Callable[[str], object], make: Callable[[int], str], *, doublings: int, tries: int) -> float:
    """How many times longer `work` takes for an input of twice the length, on average over these doublings from
    `LENGTH` on; 1 if it is too fast to be measured. Each time is the least of several tries."""
    after = _least_seconds(work, make(LENGTH << doublings), tries)
    if after < NOISE:
        return 1.0
    before = _least_seconds(work, make(LENGTH), tries)
    return float((after / max(before, NOISE / 8)) ** (1 / doublings))


def _least_seconds(work: Callable[[str], object], given: str, tries: int) -> float:
    return min(_seconds(work, given) for _ in range(tries))


def _seconds(work: Callable[[str], object], given: str) -> float:
    collects = gc.isenabled()
    gc.disable()
    try:
        began = time.thread_time()
        work(given)
        return time.thread_time() - began
    finally:
        if collects:
            gc.enable()


@pytest.mark.parametrize("parser", PARSERS)
def test_the_time_grows_no_faster_than_the_text(parser: str) -> None:
    def hostile(beginning: str, rest: str, length: int) -> str:
        return beginning + (rest * (length // len(rest) + 1))[:length]

    def slow(beginning: str, rest: str) -> bool:
        times = partial(growth, PARSERS[parser], partial(hostile, beginning, rest))
        return times(doublings=1, tries=1) > LIMIT and times(doublings=3, tries=3) > LIMIT

    assert [each for each in INPUTS if slow(*each)] == []
