"""The ports of a Ray cluster to which others than its pods may connect.

These are the dashboard, the metrics, and ports that the template declares, except those with which Ray is controlled.
The dashboard is among them because the API server's proxy uses it, for which no policy has an address that is right in
every cluster: Ray's token protects it. Without a token, everyone who reaches the dashboard can run programs. Then the
policy admits only the pods of the job and KubeRay. An administrator can open the dashboard with a further policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spotladder.workloads.network_policy import declared

_PUBLIC = {"dashboard-port": 8265, "metrics-export-port": 8080}
"""Parameters of `ray start`, with their defaults."""

_CONTROL = {"port": 6379, "ray-client-server-port": 10001, "dashboard-agent-listen-port": 52365}
"""Ports that accept programs or commands, as parameters of `ray start`, with their defaults."""


def public_ports(cluster: Mapping[str, Any]) -> set[int]:
    """The ports of a rendered `rayClusterSpec` to which everyone may connect."""
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    control = {port for group in groups for port in _given(group, public=False)} | {*_CONTROL.values()}
    given = {port for group in groups for port in _given(group, public=True)} | {*_PUBLIC.values()}
    return (given | {port for group in groups for port in declared(group["template"]["spec"])}) - control


def dashboard_ports(cluster: Mapping[str, Any]) -> set[int]:
    """The ports of a rendered `rayClusterSpec` at which its dashboard may listen: of a head whose port is read from a
    variable, all that it declares."""
    head = cluster["headGroupSpec"]
    port = str(head["rayStartParams"].get("dashboard-port", ""))
    default = _PUBLIC["dashboard-port"]
    if port and not port.isdigit():
        return {default, *declared(head["template"]["spec"])}
    return {default, int(port or default)}


def _given(group: Mapping[str, Any], *, public: bool) -> Iterator[int]:
    """The ports in the group's parameters of `ray start`. One that is not a number is read from a variable."""
    for name, value in group["rayStartParams"].items():
        if name.endswith("port") and (name in _PUBLIC) is public and str(value).isdigit():
            yield int(value)
