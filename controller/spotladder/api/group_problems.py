"""Why the groups that tiers name in `groups` do not fit the workload."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from spotladder.api.fields import Finding
from spotladder.api.groups import on_tier
from spotladder.api.jobset_workload import JobSetWorkload, job_groups
from spotladder.api.problems import Path, quoted
from spotladder.api.ray_workload import RayWorkload, group_name, groups_on_tier, worker_groups
from spotladder.api.suggest import closest
from spotladder.api.workload import Workload


def groups_in(workload: Workload, named: Collection[str]) -> list[tuple[str, bool]]:
    """The groups of the workload: the name of each, and whether it is on a tier that names these in `groups`."""
    if (ray := workload.of(RayWorkload)) is not None:
        spec = ray.template.spec
        names = [group_name(group, index) for index, group in enumerate(worker_groups(spec))]
        return list(zip(names, groups_on_tier(spec, named), strict=True))
    if (jobset := workload.of(JobSetWorkload)) is not None:
        asks = job_groups(jobset.template.spec)
        return list(zip([name for name, _ in asks], on_tier(asks, named), strict=True))
    return []


def group_problems(tiers: Sequence[Collection[str]], workload: Workload) -> list[Finding]:
    """The problems of the names in `groups` of each tier. The paths are below `spec`."""
    if not any(tiers):
        return []
    found = [groups_in(workload, named) for named in tiers]
    names, here = [name for name, _ in found[0]], [[flag for _, flag in groups] for groups in found]
    unknown = [finding for index, named in enumerate(tiers) for finding in _unknown(index, named, names)]
    return unknown or list(_changing(tiers, names, here))


def _unknown(tier: int, named: Collection[str], known: Sequence[str]) -> Iterator[Finding]:
    for name in named:
        if name in known:
            continue
        near = closest(name, known)
        hint = f"did you mean {near}?" if near else f"known: {', '.join(known) or 'none'}"
        yield Finding(_at(tier, name), f"{quoted(name)} is not a group of the workload; {hint}", at_key=True)


def _changing(
    tiers: Sequence[Collection[str]], names: Sequence[str], here: Sequence[Sequence[bool]]
) -> Iterator[Finding]:
    """The number of workers is that of the groups on the tier, the same on every tier."""
    for index, (named, flags) in enumerate(zip(tiers, here, strict=True)):
        if named and not any(flags) and set(names) <= set(named):
            message = "must leave at least one group on the tier: remove the group that trains"
            yield Finding(("tiers", index, "groups"), message, at_key=True)
        elif list(flags) != list(here[0]):
            group = next(name for name, one, other in zip(names, flags, here[0], strict=True) if one != other)
            at = ("tiers", index, "groups") if named else ("tiers", index)
            message = (
                f"must agree with tiers[0] about the group {quoted(group)}, which is on the tier unless groups names "
                "it: the number of workers is the same on every tier; name it on every tier or on none"
            )
            yield Finding(at, message, at_key=bool(named))


def _at(tier: int, name: str) -> Path:
    return ("tiers", tier, "groups", name)
