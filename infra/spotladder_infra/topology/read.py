"""Reads a fleet file and reports all of its errors, each with line and column."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path as File

from spotladder.api.check import checked
from spotladder.api.document import Document, file_name, read_documents
from spotladder.api.problems import InvalidDocument, Path, Problem, dotted, quoted
from spotladder.errors import InvalidSpec
from spotladder_infra.topology.checks import check
from spotladder_infra.topology.findings import FleetFinding
from spotladder_infra.topology.fleet import Fleet


@dataclass(frozen=True, slots=True)
class FleetFile:
    """A valid fleet, and the warnings about it."""

    fleet: Fleet
    warnings: tuple[Problem, ...]


SMOKE_JOB: Path = ("spec", "rollout", "smoke", "job")


def read_fleet(path: str | File, today: date, *, smoke: bool = False) -> FleetFile:
    """The fleet of a file; `smoke` checks the file of the smoke job as well. Raises InvalidSpec with every problem."""
    documents = read_documents(path)
    if not documents:
        raise InvalidSpec("is empty; specify a Fleet", where=file_name(path))
    document = documents[0]
    if len(documents) > 1:
        raise _refused(documents[1], (), "a second document begins here; write the Fleet in a file of its own")
    kind = document.data.get("kind") if isinstance(document.data, dict) else None
    if kind != "Fleet":
        found = f"got {quoted(kind)}" if kind is not None else "got none"
        raise _refused(document, ("kind",), f"is not a fleet file (expected kind: Fleet, {found})")
    fleet = checked(document, Fleet)
    findings = check(fleet, today)
    problems = [_problem(document, found) for found in findings if not found.warning]
    if smoke and fleet.spec.rollout.smoke is not None:
        problems += _smoke_problems(document, File(path).parent / fleet.spec.rollout.smoke.job)
    if problems:
        raise InvalidDocument(problems)
    return FleetFile(fleet, tuple(_problem(document, found) for found in findings if found.warning))


def _smoke_problems(document: Document, path: File) -> list[Problem]:
    from spotladder_infra.rollout import smoke as smoke_job  # noqa: PLC0415 – the model of jobs is slow to import

    try:
        smoke_job.read(path)
    except InvalidDocument as error:
        return list(error.problems)
    except InvalidSpec as error:
        return [Problem(document.where(SMOKE_JOB), dotted(SMOKE_JOB), str(error))]
    return []


def _problem(document: Document, found: FleetFinding) -> Problem:
    return Problem(document.where(found.path), dotted(found.path), found.message)


def _refused(document: Document, path: Path, message: str) -> InvalidDocument:
    return InvalidDocument([Problem(document.where(path), dotted(path), message)])
