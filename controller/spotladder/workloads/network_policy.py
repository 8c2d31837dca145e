"""The NetworkPolicy of attempts: which pods may connect to theirs. Connections from the pods are not limited.

| to | from |
|---|---|
| every port | the covered pods, and their submitters |
| public ports | everyone |
| the dashboard of a Ray cluster that requires no token | the first row, and KubeRay |

Policies add up: another policy of the namespace can allow more. A cluster whose network does not implement policies
ignores them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from spotladder.resources import NETWORK_POLICIES
from spotladder.workloads.guards import Guarded, sealed

KUBERAY = "kuberay-operator"
"""The name of KubeRay's Deployment and of its pods in the label `app.kubernetes.io/name`."""

KUBERAY_NAMESPACES = ("kuberay-system", "kuberay-operator", "kuberay", "ray-system", "default")
"""The namespaces in which KubeRay may run. Who may create pods there can connect as KubeRay does."""


def policy(guarded: Guarded, public: Collection[int], submitters: Collection[str]) -> dict[str, Any]:
    """The policy for the covered pods. `public`: the ports to which everyone may connect. `submitters`: the names of
    the Jobs of KubeRay whose pods submit the program."""
    own = {"podSelector": {"matchLabels": guarded.selector}}
    jobs = [{"key": "job-name", "operator": "In", "values": list(submitters)}] if submitters else []
    inside = [own, *({"podSelector": {"matchExpressions": [one]}} for one in jobs)]
    return guarded.guard(
        NETWORK_POLICIES,
        {
            **own,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": inside}, *([{"ports": _tcp(public)}] if public else [])],
        },
    )


def close(made: dict[str, Any], dashboard: Collection[int]) -> None:
    """Let only the covered pods and KubeRay connect to these ports of a `policy`, in place."""
    inside, *rest = made["spec"]["ingress"]
    public = {entry["port"] for rule in rest if "from" not in rule for entry in rule["ports"]} - {*dashboard}
    kuberay = {
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(KUBERAY_NAMESPACES)}
            ]
        },
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": KUBERAY}},
    }
    made["spec"]["ingress"] = [
        inside,
        *([{"ports": _tcp(public)}] if public else []),
        {"from": [kuberay], "ports": _tcp(dashboard)},
    ]
    sealed(made)


def _tcp(ports: Collection[int]) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in sorted(ports)]


def declared(pod: Mapping[str, Any]) -> Iterator[int]:
    """The TCP ports that the containers of a pod template declare."""
    for container in pod.get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("protocol", "TCP") == "TCP" and isinstance(number := port.get("containerPort"), int):
                yield number
