"""`spotladder infra plan`: what a fleet costs."""

from __future__ import annotations

import typer

from spotladder.cli.infra.options import FLEET, ClusterOption, FleetOption, chosen, read
from spotladder.cli.output import Format, OutputOption, print_data, print_table


def plan(fleet: FleetOption = FLEET, cluster: ClusterOption = None, *, output: OutputOption = Format.TABLE) -> None:
    """Show what a fleet costs: each cluster while it is idle, and an hour of a node of each tier.

    Prices are on-demand list prices of one region of each cloud, from a table with its date; nothing is asked.

    \b
    Examples:
      spotladder infra plan
      spotladder infra plan --cluster east --output json
    """
    from spotladder_infra import costs
    from spotladder_infra.facts.prices import AS_OF
    from spotladder_infra.topology.cluster import CREATED

    found = read(fleet, warn=output is Format.TABLE).fleet
    clusters = chosen(found, cluster)
    idle = {entry.name: costs.idle(found, entry) for entry in clusters if entry.cloud in CREATED}
    rates = [rate for rate in costs.rates(found) if rate.cluster in {entry.name for entry in clusters}]
    if output is not Format.TABLE:
        from dataclasses import asdict

        data = {
            "pricesOf": str(AS_OF),
            "idle": {name: [asdict(item) for item in items] for name, items in idle.items()},
            "tiers": [asdict(rate) for rate in rates],
        }
        print_data(data, output)
        return
    for name, items in idle.items():
        rows = [(item.what, str(item.count), _usd(item.hourly)) for item in items]
        total = None if any(item.hourly is None for item in items) else sum(item.hourly or 0 for item in items)
        print_table((name, "Count", "USD/h idle"), [*rows, ("in all", "", _usd(total))])
    prices = [(rate.pool, rate.cluster, rate.capacity_type, _usd(rate.hourly), _usd(rate.on_demand)) for rate in rates]
    print_table(("Tier", "Cluster", "Capacity", "USD/node-h", "On demand"), prices)
    typer.echo(f"Prices of {AS_OF}. A spot price of AWS without a figure is looked up by the controller.")


def _usd(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:.3f}"
