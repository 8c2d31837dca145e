"""Whether the jobs of files belong to the namespace of the option --namespace, as kubectl checks it."""

from __future__ import annotations

from spotladder.api.problems import Problem
from spotladder.api.review import Review


def namespace_problems(files: Review, namespace: str | None) -> list[Problem]:
    """One problem for each job whose file names another namespace. A job whose file names none gets that of the
    option."""
    found = []
    for entry in files.objects:
        if entry.kind != "TieredJob" or not entry.valid or namespace is None:
            continue
        given = entry.document.data["metadata"].get("namespace")
        if given and given != namespace:
            where = entry.document.where(("metadata", "namespace"))
            message = f"is {given}, but --namespace is {namespace}: remove one of them"
            found.append(Problem(where, "metadata.namespace", message))
    return found
