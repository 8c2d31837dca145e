"""The NetworkPolicy of an attempt: who may connect to its pods. Connections from the pods are not limited.

| to | from |
|---|---|
| every port | the pods of the attempt, and its submitter |
| public ports | everyone |

Policies add up: another policy of the namespace can allow more. A cluster whose network does not implement policies
ignores them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from spotladder.api.tieredjob import TieredJob
from spotladder.resources import NETWORK_POLICIES
from spotladder.workloads import names


def policy(name: str, job: TieredJob, labels: Mapping[str, str], public: Collection[int]) -> dict[str, Any]:
    """The policy for the pods with these labels. `public`: the ports to which everyone may connect."""
    own = {key: labels[key] for key in (names.JOB_UID, names.ATTEMPT)}
    return {
        "apiVersion": NETWORK_POLICIES.api_version,
        "kind": NETWORK_POLICIES.kind,
        "metadata": {"name": name, "namespace": job.metadata.namespace, "labels": dict(labels)},
        "spec": {
            **_pods(own),
            "policyTypes": ["Ingress"],
            "ingress": [
                {"from": [_pods(own), _pods({"job-name": name})]},
                {"ports": [{"protocol": "TCP", "port": port} for port in sorted(public)]},
            ],
        },
    }


def _pods(labels: Mapping[str, str]) -> dict[str, Any]:
    return {"podSelector": {"matchLabels": dict(labels)}}


def declared(pod: Mapping[str, Any]) -> Iterator[int]:
    """The TCP ports that the containers of a pod template declare."""
    for container in pod.get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("protocol", "TCP") == "TCP" and isinstance(number := port.get("containerPort"), int):
                yield number
