"""Converts a JobSet."""

from __future__ import annotations

from copy import deepcopy

from spotladder.api.problems import Path
from spotladder.conversion import skeleton, templates
from spotladder.conversion.draft import Draft
from spotladder.conversion.source import Options, Source

AT: Path = ("spec", "workload", "jobSet", "template", "spec")
JOBS: Path = (*AT, "replicatedJobs")


def from_jobset(source: Source, options: Options, _others: list[Source]) -> Draft:
    """A TieredJob of a JobSet."""
    draft = skeleton.draft_of(source, options, "jobSet", deepcopy(dict(source.data.get("spec") or {})))
    skeleton.losses(draft, draft.get(*AT, "failurePolicy", "maxRestarts"), "failurePolicy.maxRestarts")
    return finished(draft)


def finished(draft: Draft, names: tuple[str, ...] = ()) -> Draft:
    """Convert the fields that every JobSet, and what becomes one, may have. `names` are usual names of the program's
    container."""
    skeleton.suspended(draft, draft.get(*AT).pop("suspend", None))
    for index, at in enumerate(templates.each(draft, *JOBS)):
        _job(draft, at[:-1])
        templates.of_a_live_object(draft, at)
        templates.on_tier(draft, at)
        container = templates.program_container(draft, at, names)
        if index == 0:
            has = draft.get(*container) or {}
            skeleton.program_note(draft, (*container, next((key for key in ("command", "args") if key in has), "name")))
    return draft


def _job(draft: Draft, at: Path) -> None:
    """The spec of a Job in the set."""
    deadline = draft.get(*at, "activeDeadlineSeconds")
    if deadline is not None:
        draft.remove((*at, "activeDeadlineSeconds"), "limits one attempt: spec.maxDuration limits the job")
        skeleton.limit_duration(draft, deadline, "activeDeadlineSeconds")
    if draft.get(*at, "completionMode") == "NonIndexed":
        draft.remove((*at, "completionMode"), "must be Indexed, the default here: the index of a pod is its rank")
    if draft.get(*at, "podReplacementPolicy") == "TerminatingOrFailed":
        draft.remove((*at, "podReplacementPolicy"), "cannot be used with the podFailurePolicy that spotladder sets")
    for field in ("selector", "manualSelector"):
        draft.remove((*at, field), "is set by the Job controller")
    draft.remove((*at, "maxFailedIndexes"), "needs backoffLimitPerIndex, and spotladder restarts the whole set")
