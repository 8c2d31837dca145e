"""`spotladder infra plan`: shows the planned changes of a fleet and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from spotladder.cli.infra.applying import refuse_losses, say_stopping, show
from spotladder.cli.infra.options import OUT, FleetTarget, ToOption
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.errors import EnvironmentFailure
from spotladder_infra import costs
from spotladder_infra.facts.prices import AS_OF
from spotladder_infra.terraform.applied import planned, stacks_of
from spotladder_infra.terraform.events import Planned
from spotladder_infra.terraform.stack import TerraformInterrupted
from spotladder_infra.topology.cluster import WITH_STACK, Cluster
from spotladder_infra.topology.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Sequence


def plan(
    target: FleetTarget,
    *,
    offline: Annotated[
        bool, typer.Option("--offline", help="Print only the costs: run no Terraform, call no cloud.")
    ] = False,
    to: ToOption = OUT,
    output: OutputOption = Format.TABLE,
) -> None:
    """Show what `bootstrap` would create, change and delete, and what the fleet costs.

    The changes come from Terraform's plan, by type of resource. Nothing is changed. Costs are those of each cluster
    while it is idle, and of an hour of a node of each tier, by on-demand list prices of one region of each cloud, from
    a table with its date. If Terraform cannot create the plan, or bootstrap would refuse it, the command still prints
    the costs, and exits with code 5.

    \b
    Examples:
      spotladder infra plan
      spotladder infra plan --offline
      spotladder infra plan --cluster east --output json
    """
    found, clusters = target.read(warn=output is Format.TABLE)
    failure: EnvironmentFailure | None = None
    changes: dict[str, list[Planned]] = {}
    if not offline:
        try:
            for stack in stacks_of(found, clusters, to, target.state, on_interrupt=say_stopping):
                changes[stack.cluster] = planned(stack)
                stack.drop_plan()
                if output is Format.TABLE:
                    show(stack.cluster, changes[stack.cluster])
                refuse_losses(found, stack, changes[stack.cluster])
        except TerraformInterrupted:
            raise
        except EnvironmentFailure as error:
            failure = error
    _costs(found, clusters, changes, output)
    if failure is not None:
        raise failure


def _costs(fleet: Fleet, clusters: Sequence[Cluster], changes: dict[str, list[Planned]], output: Format) -> None:
    idle = {entry.name: costs.idle(fleet, entry) for entry in clusters if entry.cloud in WITH_STACK}
    rates = [rate for rate in costs.rates(fleet) if rate.cluster in {entry.name for entry in clusters}]
    if output is not Format.TABLE:
        from dataclasses import asdict

        data: dict[str, Any] = {
            "pricesOf": str(AS_OF),
            "idle": {name: [asdict(item) for item in items] for name, items in idle.items()},
            "tiers": [asdict(rate) for rate in rates],
        }
        if changes:
            data["changes"] = {
                name: [{"address": entry.address, "action": str(entry.action)} for entry in entries]
                for name, entries in changes.items()
            }
        print_data(data, output)
        return
    for name, items in idle.items():
        rows = [(item.what, str(item.count), _usd(item.hourly)) for item in items]
        total = None if any(item.hourly is None for item in items) else sum(item.hourly or 0 for item in items)
        print_table((name, "Count", "USD/h idle"), [*rows, ("in all", "", _usd(total))])
    prices = [
        (rate.pool, rate.cluster, rate.capacity_type, _usd(rate.hourly), _usd(rate.on_demand), _usd(rate.disk))
        for rate in rates
    ]
    print_table(("Tier", "Cluster", "Capacity", "USD/node-h", "On demand", "Disk"), prices)
    typer.echo(f"Prices are those of {AS_OF}. The controller looks up the AWS spot prices that have no figure here.")


def _usd(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:.3f}"
