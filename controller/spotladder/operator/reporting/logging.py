"""The controller's log format: one JSON object per line in a cluster, text on a terminal."""

from __future__ import annotations

import sys

import structlog

from spotladder.errors import InvalidSpec


def set_up(form: str = "auto") -> None:
    """`form` is json, text or auto. Raises InvalidSpec for other values."""
    if form not in ("auto", "json", "text"):
        raise InvalidSpec(f"{form!r} is not json, text or auto", path="--log-format")
    text = form == "text" or (form == "auto" and sys.stderr.isatty())
    end = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if text
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *end,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
