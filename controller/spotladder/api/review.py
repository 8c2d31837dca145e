"""Validates a set of files: each document, and the references between documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.check import checked
from spotladder.api.deadline import check_deadline
from spotladder.api.document import Document, file_name, read_documents
from spotladder.api.local_mode import small_pools, unbounded_overlap
from spotladder.api.missing_capacity import missing_capacity
from spotladder.api.problems import Problem, problems_of, quoted
from spotladder.api.read import kind_of
from spotladder.api.tieredjob import TieredJob
from spotladder.api.trace import trace_problems
from spotladder.api.world import World
from spotladder.core.model import Instant
from spotladder.errors import InvalidSpec

Model = TieredJob | CapacityTier | World


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One object of the files. `model` is None if the object is invalid."""

    document: Document
    kind: str
    name: str
    model: Model | None
    valid: bool


@dataclass(frozen=True, slots=True)
class Review:
    """The objects and problems of the files, in the order of the files."""

    objects: tuple[Reviewed, ...]
    problems: tuple[Problem, ...]

    def with_problems(self, more: Iterable[Problem]) -> Review:
        """This review with additional problems."""
        more = tuple(more)
        faulty = {problem.where for problem in more}
        objects = (
            replace(entry, valid=entry.valid and faulty.isdisjoint(entry.document.places)) for entry in self.objects
        )
        return Review(tuple(objects), (*self.problems, *more))


def review(files: Sequence[Path | str], *, more_capacity: bool = False, now: Instant | None = None) -> Review:
    """Validate all documents of all files. Invalid content is returned as problems, not raised.

    `more_capacity`: jobs may name CapacityTiers that are not in the files. `now`: jobs with an earlier deadline are
    invalid.
    """
    problems: list[Problem] = []
    broken: list[Problem] = []
    found: list[tuple[Document, type[Model] | None, Model | None]] = []
    for file in files:
        try:
            documents = read_documents(file)
        except InvalidSpec as error:
            problems += problems_of(error)
            continue
        if not documents:
            problems.append(Problem(file_name(file), "", "is empty; specify a TieredJob, CapacityTier or world file"))
        for document in documents:
            kind, model = None, None
            try:
                kind = kind_of(document)
                model = checked(document, kind)
                if isinstance(model, World):
                    broken += trace_problems(model, document, Path(file).parent)
                elif isinstance(model, TieredJob) and now is not None:
                    check_deadline(model, now, document)
            except InvalidSpec as error:
                (problems if model is None else broken).extend(problems_of(error))
            found.append((document, kind, model))
    objects = tuple(
        Reviewed(document, kind.__name__ if kind else "?", _name(document), model, model is not None)
        for document, kind, model in found
    )
    missing = [] if more_capacity else _missing_capacity(found)
    return Review(objects, tuple(problems)).with_problems([*broken, *taken_names(_named(found)), *missing])


_Found = Sequence[tuple[Document, type[Model] | None, Model | None]]


Identity = tuple[str, str, str]
"""The kind, the namespace and the name of an object."""


def taken_names(named: Iterable[tuple[Identity, Document]]) -> list[Problem]:
    """One problem for each object whose identity an earlier one has."""
    first: dict[Identity, str] = {}
    problems = []
    for identity, document in named:
        where, (kind, _, name) = document.where(("metadata", "name")), identity
        if first.setdefault(identity, where) != where:
            message = f'"{name}" is already the name of the {kind} at {first[identity]}'
            problems.append(Problem(where, "metadata.name", message))
    return problems


def _named(found: _Found) -> Iterable[tuple[Identity, Document]]:
    for document, _, model in found:
        if model is not None and not isinstance(model, World):
            namespace = model.metadata.namespace if isinstance(model, TieredJob) else ""
            yield (model.kind, namespace, model.metadata.name), document


def _missing_capacity(found: _Found) -> list[Problem]:
    known: dict[str, object] = {}
    for _, _, model in found:
        if isinstance(model, World):
            known |= model.pools
        elif isinstance(model, CapacityTier):
            known[model.metadata.name] = model
    if not known or any(model is None and kind in (World, CapacityTier) for _, kind, model in found):
        return []
    jobs = ((document, model) for document, _, model in found if isinstance(model, TieredJob))
    return [
        problem
        for document, job in jobs
        for check in (missing_capacity, small_pools, unbounded_overlap)
        for problem in check(job, known, document)
    ]


def _name(document: Document) -> str:
    data = document.data if isinstance(document.data, dict) else {}
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return quoted(name)[1:-1] if isinstance(name, str) else "–"
