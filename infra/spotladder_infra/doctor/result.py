"""Checks and their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from spotladder.errors import EnvironmentFailure


class Status(StrEnum):
    """A `failed` check must be fixed before the fleet works; a warning names a risk."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check, which leaves out its own scope and name. `fix` is the remedy, empty if none is needed.

    The scope is this machine, a cloud, a region or a cluster.
    """

    status: Status
    found: str
    fix: str = ""
    check: str = ""
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A check of one place, made when `found` is read: that raises EnvironmentFailure if it is not possible.

    After a failed `gate` the following checks of the same table are not possible.
    """

    scope: str
    name: str
    found: Iterable[CheckResult]
    gate: bool = False


def ok(found: str) -> CheckResult:
    """The requirement is met."""
    return CheckResult(Status.OK, found)


def failed(found: str, fix: str) -> CheckResult:
    """The fleet does not work."""
    return CheckResult(Status.FAILED, found, fix)


def divided(error: EnvironmentFailure) -> tuple[str, str]:
    """What was found and the remedy, which follows the last colon and blank of the message."""
    found, _, fix = str(error).rpartition(": ")
    return found, fix


def results(checks: Iterable[Check]) -> Iterator[CheckResult]:
    """The results of the checks in their order. A check that is not possible is skipped, and so are all after a gate
    that is not passed."""
    for check in checks:
        passed = True
        try:
            for found in check.found:
                passed = passed and found.status is not Status.FAILED
                yield replace(found, check=found.check or check.name, scope=check.scope)
        except EnvironmentFailure as error:
            passed = False
            fix = "grant this identity the permission" if "AccessDenied" in str(error) else ""
            yield CheckResult(Status.SKIPPED, str(error), fix, check.name, check.scope)
        if check.gate and not passed:
            yield CheckResult(Status.SKIPPED, f"no {check.name}", "", "all other checks", check.scope)
            return


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand of pools for one quota, in its unit: for one node, and with all pools at their limits."""

    least: float = 0
    most: float = 0

    def __add__(self, other: Demand) -> Demand:
        return Demand(max(self.least, other.least), self.most + other.most)


def compared(quota: str, limit: float, demand: Demand, *, how: str, used: float = 0) -> CheckResult:
    """Compares a quota with the demand of the fleet. `how` says how to raise it.

    `used` is displayed only, because it may include nodes of this fleet.
    """
    found = f"{limit:g}" + (f" ({used:g} in use)" if used else "")
    if limit < demand.least:
        return CheckResult(Status.FAILED, f"{found}; needs at least {demand.least:g}", how, quota)
    if limit < demand.most:
        return CheckResult(Status.WARNING, f"{found}; the pools may grow to {demand.most:g}", how, quota)
    return CheckResult(Status.OK, found, "", quota)
