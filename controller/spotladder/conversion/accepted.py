"""Removes the fields of a draft that `spotladder validate --for-cluster` does not accept, with its reasons.

Only fields with which the other system controls restarts, sizes or the removal of its objects are removed, and hooks
that stop the program too early; any other problem is an error of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spotladder.api.check import checked
from spotladder.api.document import Document
from spotladder.api.problems import InvalidDocument, Path, Problem, dotted
from spotladder.api.review import Review, Reviewed
from spotladder.api.tieredjob import TieredJob
from spotladder.conversion.draft import Draft
from spotladder.conversion.source import Options, Source
from spotladder.errors import InvalidSpec
from spotladder.workloads.file_review import for_cluster, stopping_hooks

_CONTROL = {
    "backoffLimit", "backoffLimitPerIndex", "completionMode", "deletionStrategy", "enableInTreeAutoscaling",
    "failurePolicy", "jobId", "managedBy", "manualSelector", "maxFailedIndexes", "minReplicas", "nodeName",
    "podFailurePolicy", "podReplacementPolicy", "restartPolicy", "selector", "shutdownAfterJobFinishes", "suspend",
    "ttlSecondsAfterFinished", "upgradeStrategy",
}  # fmt: skip
_WORKLOAD = "spec.workload."
_REMEDY = re.compile(r"([;:]) remove it(, (?:and|or) |$)")
"""Advice at the end of messages that the conversion itself has followed."""

_ROUNDS = 64
"""Maximum number of reviews: each finds at least one field and value."""


def accept(draft: Draft, source: Source, options: Options) -> None:
    """Remove fields until the draft is valid.

    Raises:
        InvalidDocument: the source has a field that cannot be converted; names it as it is in the result.
        InvalidSpec: an option is wrong.
    """
    for path, message in list(stopping_hooks(draft.job)):
        draft.remove(path, _reason(message))
    for _ in range(_ROUNDS):
        found = _problems(draft.job, source)
        if not found:
            return
        paths = {dotted(path): path for path in _paths(draft.job, ())}
        changed = [problem for problem in found if _mend(draft, paths, problem)]
        if not changed:
            break
    for problem in found:
        if options.checkpoints and problem.path == "spec.checkpoints.uri":
            raise InvalidSpec(problem.message, path="--checkpoints")
        if options.tiers and problem.path.startswith("spec.tiers["):
            raise InvalidSpec(problem.message, path="--tier")
    raise InvalidDocument(found)


def _mend(draft: Draft, paths: Mapping[str, Path], problem: Problem) -> bool:
    path, every = paths.get(problem.path), paths.values()
    if path is None or path[-1] not in _CONTROL or not problem.path.startswith(_WORKLOAD):
        return False
    for like in _alike(draft, path, every):
        draft.remove(like, _reason(problem.message))
    return True


def _reason(message: str) -> str:
    return _REMEDY.sub(lambda found: f"{found[1]} " if found[2] else "", message)


def _alike(draft: Draft, path: Path, every: Iterable[Path]) -> list[Path]:
    """This field, and the same field with the same value in other elements of the lists around it: the review of a
    JobSet reports one problem at a time. The size of a worker group depends on its other fields."""
    if path[-1] == "minReplicas":
        return [path]
    shape, value = _shape(path), draft.get(*path)
    return [other for other in every if _shape(other) == shape and draft.get(*other) == value]


def _shape(path: Path) -> Path:
    return tuple(0 if isinstance(part, int) else part for part in path)


def _problems(job: dict[str, Any], source: Source) -> list[Problem]:
    document = Document(source.document.file, job, {}, {(): source.where()})
    try:
        model = checked(document, TieredJob)
    except InvalidDocument as error:
        return list(error.problems)
    entry = Reviewed(document, "TieredJob", model.metadata.name, model, valid=True)
    return for_cluster(Review((entry,), ()))


def _paths(value: Any, at: Path) -> Iterator[Path]:
    yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _paths(inner, (*at, key))
