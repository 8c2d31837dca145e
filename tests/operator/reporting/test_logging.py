"""The format of the controller's log."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator

import pytest
import structlog

from spotladder.operator.reporting import logging


class Stream(io.StringIO):
    """The error output of a process, which may be a terminal."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def written(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    """The log of one warning."""
    stream = Stream(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    logging.set_up()
    log = structlog.get_logger("spotladder").bind(job="digits")
    try:
        int("x")
    except ValueError:
        log.warning("lost", cause={1}, exc_info=True)
    return stream.getvalue()


def test_a_record_is_one_line_of_json_with_its_level_and_time_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = written(monkeypatch, terminal=False).splitlines()
    record = json.loads(line)
    assert (record["event"], record["level"], record["job"]) == ("lost", "warning", "digits")
    assert record["cause"] == "{1}", "a value of any type is written as text"
    assert record["timestamp"].endswith("Z")
    assert "T" in record["timestamp"]
    assert record["exception"].endswith("base 10: 'x'")
    assert list(record)[:2] == ["job", "cause"], "the fields keep their order"


def test_on_a_terminal_the_log_is_text_with_the_traceback_below(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *more = written(monkeypatch, terminal=True).splitlines()
    assert "lost" in first
    assert "digits" in first
    assert more[0].startswith("Traceback")
    assert more[-1].endswith("base 10: 'x'")
