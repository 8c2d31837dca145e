"""Reads a user's files: one TieredJob, one world, or any mix of kinds for validation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File
from typing import TypeVar

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.check import checked
from spotladder.api.document import Document, file_name, read_documents
from spotladder.api.local_mode import small_pools, unbounded_overlap
from spotladder.api.missing_capacity import missing_capacity
from spotladder.api.problems import InvalidDocument, Path, Problem, dotted, quoted
from spotladder.api.record import API_VERSION, Record
from spotladder.api.suggest import closest
from spotladder.api.tieredjob import TieredJob
from spotladder.api.trace import trace_problems
from spotladder.api.world import World
from spotladder.errors import InvalidSpec

__all__ = ["errors_located", "located", "read_documents", "read_job", "read_job_and_world", "read_world"]

KINDS: dict[str, type[TieredJob | CapacityTier]] = {"TieredJob": TieredJob, "CapacityTier": CapacityTier}

GIVE: dict[type[Record], str] = {
    TieredJob: "specify the file of the job, and a world file with --world",
    World: "specify a file that begins with pools",
}
"""What to do instead of giving a file of another kind."""

M = TypeVar("M", bound=Record)


def read_job(path: str | File) -> TieredJob:
    """The one TieredJob of a file. Raises InvalidSpec with every problem found."""
    return _only(path, TieredJob, "a TieredJob")[1]


def read_world(path: str | File) -> World:
    """Read a world file, and check that its traces can be read. Raises InvalidSpec with all problems."""
    document, world = _only(path, World, "a world file")
    if problems := trace_problems(world, document, File(path).parent):
        raise InvalidDocument(problems)
    return world


def read_job_and_world(job_path: str | File, world_path: str | File) -> tuple[TieredJob, World]:
    """The job and the world; each tier of the job has a pool with enough nodes. Raises InvalidSpec with every problem
    found."""
    document, job = _only(job_path, TieredJob, "a TieredJob")
    world = read_world(world_path)
    checks = (missing_capacity, small_pools, unbounded_overlap)
    if problems := [problem for check in checks for problem in check(job, world.pools, document)]:
        raise InvalidDocument(problems)
    return job, world


def located(error: InvalidSpec, path: str | File) -> InvalidSpec:
    """The error with the line and column of its field, if it has no location yet.

    The file is read again; standard input cannot be. An error of a command-line option has no location.
    """
    if error.where or not error.path or error.path.startswith("--"):
        return error
    documents = [] if str(path) == "-" else read_documents(path)
    where = documents[0].where_named(error.path) if documents else file_name(path)
    return InvalidSpec(error.message, path=error.path, where=where)


@contextmanager
def errors_located(path: str | File) -> Iterator[None]:
    """Inside the block, an error about a field of this file gets the line and column of the field."""
    try:
        yield
    except InvalidSpec as error:
        raise located(error, path) from error


def kind_of(document: Document) -> type[TieredJob | CapacityTier | World]:
    """The model of the document, by its `kind`. Raises InvalidSpec for an unknown kind."""
    data = document.data
    if not isinstance(data, dict):
        raise _refused(document, (), "must be a mapping: a TieredJob begins with apiVersion, kind, metadata and spec")
    if "kind" not in data and "pools" in data:
        return World
    if "kind" not in data:
        near = next((key for key in data if closest(key, ["kind", "pools"], cutoff=0.7)), None)
        hint = f"; is {quoted(near)} misspelt?" if near else ""
        raise _refused(document, (), f"must have kind (TieredJob, CapacityTier) or pools (a world file){hint}")
    kind = data["kind"]
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    near = closest(kind, KINDS) if isinstance(kind, str) else None
    hint = f"; did you mean {near}?" if near else f" of {API_VERSION}: {', '.join(KINDS)}"
    raise _refused(document, ("kind",), f"{quoted(kind)} is not a kind{hint}")


def _only(path: str | File, model: type[M], wanted: str) -> tuple[Document, M]:
    documents = read_documents(path)
    if not documents:
        raise InvalidSpec(f"is empty; specify {wanted}", where=file_name(path))
    if len(documents) > 1:
        raise _refused(
            documents[1],
            (),
            f"the file must have one document, but a second one begins here; specify {wanted} in its own file",
        )
    kind = kind_of(documents[0])
    if kind is not model:
        name = "a world file" if kind is World else f"a {kind.__name__}"
        raise _refused(documents[0], (), f"is {name}, not {wanted}; {GIVE[model]}")
    return documents[0], checked(documents[0], model)


def _refused(document: Document, path: Path, message: str) -> InvalidDocument:
    return InvalidDocument([Problem(document.where(path), dotted(path), message)])
