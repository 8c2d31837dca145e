"""The NetworkPolicy of attempts: who may connect to their pods. Connections from the pods are not limited.

| to | from |
|---|---|
| every port | the covered pods, and their submitters |
| public ports | everyone |

Policies add up: another policy of the namespace can allow more. A cluster whose network does not implement policies
ignores them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from spotladder.resources import NETWORK_POLICIES
from spotladder.workloads.guards import Guarded


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
            "ingress": [
                {"from": inside},
                {"ports": [{"protocol": "TCP", "port": port} for port in sorted(public)]},
            ],
        },
    )


def declared(pod: Mapping[str, Any]) -> Iterator[int]:
    """The TCP ports that the containers of a pod template declare."""
    for container in pod.get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("protocol", "TCP") == "TCP" and isinstance(number := port.get("containerPort"), int):
                yield number
