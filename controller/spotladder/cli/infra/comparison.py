"""`spotladder infra status|drift` and `rollout --dry-run`: compares clusters with the fleet file. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import typer

from spotladder.cli.infra.rollout_site import RolloutTarget, rollout_site
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.errors import EnvironmentFailure

if TYPE_CHECKING:
    from spotladder_infra.rollout.cluster_rollout import RolloutSite
    from spotladder_infra.rollout.engine import Change
    from spotladder_infra.rollout.inspection import ComponentRow

Row = TypeVar("Row")


def print_rollout(place: RolloutSite, output: Format) -> bool:
    """Prints what a rollout would change in each cluster, and returns whether it would change anything.

    Raises:
        EnvironmentFailure: A cluster cannot be read; the others are shown.
    """
    numbers = {name: number for number, wave in enumerate(place.waves(), 1) for name in wave}

    def changes(name: str) -> list[dict[str, str]]:
        found = place.platform(name).preview()
        return [{"wave": str(numbers[name]), "cluster": name, **_described(change)} for change in found]

    def show(entries: Sequence[dict[str, str]]) -> None:
        if output is Format.TABLE:
            _print_changes(entries)
        else:
            print_data(entries, output)

    return any(entry["change"] != "same" for entry in _inspected(place, list(numbers), changes, show))


def status(
    target: RolloutTarget,
    *,
    output: OutputOption = Format.TABLE,
) -> None:
    """Show the version of each component in each cluster, and whether it is ready. Exit code 5 if a cluster cannot be
    read; the others are shown.

    \b
    Examples:
      spotladder infra status
      spotladder infra status --cluster east --output json
    """
    place = rollout_site(target)
    from spotladder_infra.rollout.inspection import inspect

    def show(rows: Sequence[ComponentRow]) -> None:
        if output is not Format.TABLE:
            print_data([asdict(row) for row in rows], output)
        elif rows:
            cells = [(row.cluster, row.component, row.version, row.wanted, row.status, row.ready) for row in rows]
            print_table(("Cluster", "Component", "Version", "Wanted", "Status", "Ready"), cells)

    _inspected(place, place.targets, lambda name: inspect(place.platform(name)), show)


def drift(
    target: RolloutTarget,
    *,
    output: OutputOption = Format.TABLE,
) -> None:
    """Find manual changes in the clusters, and what the fleet file changes. Exit code 1 if there is a difference; a
    rollout undoes it.

    \b
    Examples:
      spotladder infra drift
      spotladder infra drift --cluster east --output json
    """
    if print_rollout(rollout_site(target), output):
        raise typer.Exit(1)


def _inspected(
    place: RolloutSite,
    names: Sequence[str],
    inspect_one: Callable[[str], Iterable[Row]],
    show: Callable[[Sequence[Row]], None],
) -> list[Row]:
    """The rows of the clusters, after `show` has printed them. Raises EnvironmentFailure with one line for each cluster
    that cannot be read."""
    from spotladder_infra.rollout.inspection import inspect_all

    rows, failures = inspect_all(names, place.fleet.spec.rollout.concurrency, inspect_one)
    show(rows)
    if failures:
        raise EnvironmentFailure("\n".join(failures))
    return rows


def _described(change: Change) -> dict[str, str]:
    from spotladder_infra.rollout.changes import details

    return {"component": change.resource, "change": change.operation, "details": details(change)}


def _print_changes(entries: Sequence[dict[str, str]]) -> None:
    rows = [
        (entry["wave"], entry["cluster"], entry["component"], entry["change"], entry["details"])
        for entry in entries
        if entry["change"] != "same"
    ]
    if rows:
        print_table(("Wave", "Cluster", "Component", "Change", "Details"), rows)
    if entries:
        typer.echo(f"{len(rows)} to change, {len(entries) - len(rows)} unchanged.")
