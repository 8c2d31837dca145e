"""Errors, typed by what the caller must do. Expected outcomes (no capacity, an eviction) are data, not errors."""

from __future__ import annotations

from spotladder.exit_code import ExitCode


class SpotladderError(Exception):
    """Base class of spotladder's errors. The message is one line: the place, the error and the remedy."""

    exit_code: int = 1


def described(error: BaseException) -> str:
    """An unexpected error in one line: its type, then its text."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its kind if it has no text."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


class InvalidSpec(SpotladderError):
    """The user must change the input. `path` names the field, `where` the file, line and column."""

    exit_code = 2

    def __init__(self, message: str, *, path: str = "", where: str = "") -> None:
        self.path = path
        self.where = where
        self.message = message
        super().__init__(": ".join(part for part in (where, path, message) if part))


class Refused(SpotladderError):
    """The command's arguments are invalid, or the cluster rejects the request."""

    exit_code = 2


class EnvironmentFailure(SpotladderError):
    """A part of the job's environment is missing or refuses a request: bucket, credentials, disk, memory, a port, a
    package."""

    exit_code = 5


class StoreUnavailable(EnvironmentFailure):
    """The store does not respond; a retry may succeed."""


class Fenced(SpotladderError):
    """A newer writer owns the commit log. Stop at once and write nothing more."""

    exit_code: int = ExitCode.FENCED


class CheckpointCorrupt(SpotladderError):
    """A commit's files do not match what was recorded. The commit before it is used instead."""

    exit_code = 5


class LogCorrupt(EnvironmentFailure):
    """A log entry is torn, foreign or of a newer version. The message names the object; nothing is changed."""


class TooLarge(EnvironmentFailure):
    """An object, a listing or a response is larger than the limit for it. The message has the limit and what was found,
    as far as it was read; a limit without a setting says so."""

    def __init__(self, what: str, unit: str, found: int, most: int, remedy: str = "") -> None:
        self._given = what, unit, found, most, remedy
        super().__init__(
            f"{what}: has at least {found:,} {unit}, and at most {most:,} are read (no setting raises this limit)"
            + (f": {remedy}" if remedy else "")
        )

    def __reduce__(self) -> tuple[type[TooLarge], tuple[str, str, int, int, str]]:
        return TooLarge, self._given


class IllegalTransition(SpotladderError):
    """A change of stage that the table does not have. Nothing was changed."""
