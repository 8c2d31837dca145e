"""Converts a JobSet."""

from __future__ import annotations

import re
from copy import deepcopy

from spotladder.api.problems import Path
from spotladder.api.template import inner
from spotladder.conversion import limits, skeleton, templates
from spotladder.conversion.addresses import replace_addresses
from spotladder.conversion.draft import Draft
from spotladder.conversion.source import Options, Source

AT: Path = ("spec", "workload", "jobSet", "template", "spec")
JOBS: Path = (*AT, "replicatedJobs")


def from_jobset(source: Source, options: Options, _others: list[Source]) -> Draft:
    """A TieredJob of a JobSet."""
    spec = deepcopy(dict(source.data.get("spec") or {}))
    jobs = spec.get("replicatedJobs") or []
    draft = skeleton.draft_of(source, options, "jobSet", spec)
    limits.losses(draft, draft.get(*AT, "failurePolicy", "maxRestarts"), "failurePolicy.maxRestarts")
    coordinator = inner(spec, "coordinator", "replicatedJob") or inner(next(iter(jobs), None), "name")
    return finished(draft, source.name, rf"-{re.escape(str(coordinator))}-0-0")


def finished(draft: Draft, name: str, first: str, usual: str = "") -> Draft:
    """Convert the fields that every JobSet, and what becomes one, may have.

    `name` is that of the source, `first` a pattern of the suffix in the name of its pod with rank 0, `usual`
    the name that the other system gives the program's container.
    """
    limits.suspended(draft, draft.get(*AT).pop("suspend", None))
    for index, at in enumerate(templates.each(draft, *JOBS)):
        _job(draft, at[:-1])
        templates.of_a_live_object(draft, at)
        templates.on_tier(draft, at)
        container = templates.program_container(draft, at, usual=usual)
        replace_addresses(draft, at, name, first)
        if index == 0:
            has = draft.get(*container) or {}
            skeleton.program_note(draft, (*container, next((key for key in ("command", "args") if key in has), "name")))
    return draft


def _job(draft: Draft, at: Path) -> None:
    """The spec of a Job in the set."""
    for whole in ((*at, "template", "spec"), at):  # The pods have a deadline, too.
        deadline = draft.remove(
            (*whole, "activeDeadlineSeconds"), "limits one attempt: spec.maxDuration limits the job"
        )
        limits.limit_duration(draft, deadline, "activeDeadlineSeconds")
