"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """A `failed` check must be fixed before the fleet works; a warning names a risk."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check. `scope` is this machine, a cloud, a region or a cluster; `fix` is the remedy, empty if none is
    needed."""

    scope: str
    check: str
    status: Status
    found: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand of pools for one quota, in its unit: for one node, and with all pools at their limits."""

    least: float
    most: float

    def __add__(self, other: Demand) -> Demand:
        return Demand(max(self.least, other.least), self.most + other.most)


def compared(scope: str, quota: str, limit: float, demand: Demand, *, how: str, used: float = 0) -> CheckResult:
    """Compares a quota with the demand of the fleet. `how` says how to raise it.

    `used` is displayed only, because it may include nodes of this fleet.
    """
    found = f"{limit:g}" + (f" ({used:g} in use)" if used else "")
    if limit < demand.least:
        return CheckResult(scope, quota, Status.FAILED, f"{found}; needs at least {demand.least:g}", how)
    if limit < demand.most:
        return CheckResult(scope, quota, Status.WARNING, f"{found}; the pools may grow to {demand.most:g}", how)
    return CheckResult(scope, quota, Status.OK, found)
