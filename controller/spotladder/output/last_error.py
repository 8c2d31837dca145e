"""Finds the error that ended a program in its output: the last traceback or, without one, the last line.

Rules

1. Terminal codes are removed, and so are the prefixes that Ray puts before the lines of its workers. Lines of several
   workers may be interleaved: a traceback is read from the lines of one of them.
2. The last traceback counts. A chain ("During handling of the above exception …") ends with the exception that was not
   caught, and Ray quotes the traceback of the rank that failed inside its own message.
3. A traceback that is followed by more than `STALE_AFTER` lines was caught and logged, and the program continued. The
   last line is used instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from spotladder.output.redact import redacted

STALE_AFTER = 40
"""Number of lines after a traceback beyond which the traceback did not end the program."""

LONGEST_ERROR = 300
"""Maximum length of `last_error`, in characters."""

LONGEST_READ = 16_384
"""Number of characters at the end of the output that are searched for the error."""

LONGEST_LINE = 1_000
"""Maximum length of one of the last lines, in characters."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_RAY = re.compile(r"^(\([\w.:<>\[\]() -]*?\bpid=\d+(?:, ip=[\w.:]+)?\)) ?")
_REPEATED = re.compile(r" ?\[repeated \d+x across cluster\].*$")
_GROUP = re.compile(r"^\s*\| ?")
_FRAME = re.compile(r'^\s+File "([^"]*)", line (\d+)')
_OWN_LINE = re.compile(r"^spotladder: (.*) \(exit code \d+\)$")
"""The last line of a program that `train.ending` ends. Callers report the exit code themselves."""

_HEADER = re.compile(r"Traceback \(most recent call last\):\s*$")


@dataclass(frozen=True, slots=True)
class _Line:
    source: str
    """The worker that printed it, as Ray calls it; "" for the program itself."""
    text: str


def plain(text: str) -> str:
    """The text without terminal codes. Of a line that carriage returns have overwritten, only the last text remains."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in _ANSI.sub("", text).split("\n"))


def without_repetition(line: str) -> str:
    """The line without Ray's note of how many workers printed it."""
    return _REPEATED.sub("", line)


def last_error(text: str) -> str:
    """One line: the exception that ended the program and where it was raised, else the last line; "" for no output.

    Secrets are removed. Example: `ValueError: no data in s3://b/x (train.py:31)`.
    """
    lines = _lines(text[-LONGEST_READ:])
    if (found := _last_traceback(lines)) is not None:
        message = " ".join(line.text.strip() for line in found.message if line.text.strip())
        where = f" ({found.where})"
        return redacted(_shortened(message, LONGEST_ERROR - len(where)) + where)
    last = next((line.text.strip() for line in reversed(lines) if line.text.strip()), "")
    return redacted(_shortened(_OWN_LINE.sub(r"\1", last), LONGEST_ERROR))


def last_lines(text: str, most: int = 20, known: Iterable[str] = ()) -> tuple[str, ...]:
    """The last traceback with its exception, else the last lines; at most `most` lines. Secrets are removed, also the
    values that are `known`."""
    lines = _lines(text)
    if (found := _last_traceback(lines)) is not None:
        kept = [line.text.rstrip() for line in found.lines]
        if len(kept) > most:  # the frames that matter are the last ones
            kept = [kept[0], "  …", *kept[len(kept) - most + 2 :]]
    else:
        kept = [line.text.rstrip() for line in lines if line.text.strip()][-most:]
    shown = "\n".join(_shortened(line, LONGEST_LINE) for line in kept)
    return tuple(redacted(shown, known).split("\n")) if kept else ()


@dataclass(frozen=True, slots=True)
class _Traceback:
    lines: list[_Line]
    message: list[_Line]
    where: str


def _lines(text: str) -> list[_Line]:
    return [_line(line) for line in plain(text).split("\n")]


def _line(text: str) -> _Line:
    source = ""
    if prefix := _RAY.match(text):
        source, text = prefix[1], _REPEATED.sub("", text[prefix.end() :])
    return _Line(source, _GROUP.sub("", text))


def _last_traceback(lines: list[_Line]) -> _Traceback | None:
    for at in range(len(lines) - 1, -1, -1):
        if frame := _FRAME.match(lines[at].text):
            break
    else:
        return None
    source = lines[at].source
    following = [line for line in lines[at + 1 :] if line.source == source]
    end = next((index for index, line in enumerate(following) if line.text and not line.text[0].isspace()), None)
    if end is None:
        return None  # cut off before its exception
    message = _message(following[end:])
    if sum(1 for line in following[end + len(message) :] if line.text.strip()) > STALE_AFTER:
        return None
    where = f"{frame[1].rpartition('/')[2]}:{frame[2]}"
    return _Traceback([*_frames(lines[: at + 1], source), *following[:end], *message], message, where)


def _message(following: list[_Line]) -> list[_Line]:
    """The line of the exception, and the next one if the first ends with a colon."""
    return following[:2] if following[0].text.rstrip().endswith(":") and len(following) > 1 else following[:1]


def _frames(before: list[_Line], source: str) -> list[_Line]:
    """The lines of the traceback down to its last frame: from its header on, where it has one."""
    kept = [line for line in before if line.source == source]
    for index in range(len(kept) - 1, -1, -1):
        if _HEADER.search(kept[index].text):
            return kept[index:]
        if not kept[index].text[:1].isspace():
            return kept[index + 1 :]
    return kept


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: max(0, longest - 1)].rstrip() + "…"
