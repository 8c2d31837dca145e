"""Checks that the capacity which the tiers of a job name is known."""

from __future__ import annotations

from collections.abc import Mapping

from spotladder.api.document import Document
from spotladder.api.problems import Path, Problem, dotted
from spotladder.api.suggest import closest
from spotladder.api.tieredjob import TieredJob


def missing_capacity(
    job: TieredJob,
    known: Mapping[str, object],
    document: Document | None = None,
    *,
    nowhere: str = "is neither a pool of the world file nor a CapacityTier in these files",
    groups: bool = True,
) -> list[Problem]:
    """One problem for each tier, and with `groups` for each group of a tier, with unknown capacity. `document` provides
    its location; `nowhere` completes the message with the places that were searched."""
    problems = []
    named: list[tuple[str, Path]] = []
    for index, tier in enumerate(job.spec.tiers):
        at: Path = ("spec", "tiers", index)
        named.append((tier.capacity_tier, (*at, "capacityTier")))
        beside = tier.groups.items() if groups else ()
        named += [(group.capacity_tier, (*at, "groups", name, "capacityTier")) for name, group in beside]
    for name, path in named:
        if name in known:
            continue
        near = closest(name, known)
        hint = f"did you mean {near}?" if near else f"known: {', '.join(known)}"
        message = f'"{name}" {nowhere}; {hint}'
        problems.append(Problem(document.where(path) if document else "", dotted(path), message))
    return problems
