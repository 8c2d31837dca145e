"""Arguments and options that are Kubernetes names."""

from __future__ import annotations

from collections.abc import Callable

import typer

from spotladder.errors import Refused
from spotladder.jobs import kubernetes_names


def job(text: str) -> str:
    """An argument that names a job. Raises BadParameter."""
    return _parsed(kubernetes_names.job, text)


def namespace(text: str) -> str:
    """An option that names a namespace. Raises BadParameter."""
    return _parsed(kubernetes_names.namespace, text)


def tier(text: str) -> str:
    """An option that names a CapacityTier. Raises BadParameter."""
    return namespace(text)


def _parsed(name: Callable[[str], str], text: str) -> str:
    try:
        return name(text)
    except Refused as error:
        raise typer.BadParameter(str(error)) from None
