"""A fake of EKS's DescribeAddonVersions, which moto lacks; botocore checks the requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spotladder_infra.facts import addons

KUBERNETES = "1.35"


class Addons:
    """The versions that EKS offers, by add-on; the first one is the default. At first they are the recorded ones.

    `versions` is the response about the cluster's version of Kubernetes.
    """

    def __init__(self) -> None:
        self.offered: dict[str, list[str]] = {name: [version] for name, version in addons.PINNED[KUBERNETES].items()}
        self.versions = [{"versionStatus": "STANDARD_SUPPORT"}]

    def answer(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """The response to a request with this query string."""
        assert query["kubernetesVersion"] == KUBERNETES
        name = str(query["addonName"])
        versions = [
            {
                "addonVersion": version,
                "compatibilities": [{"clusterVersion": KUBERNETES, "defaultVersion": place == 0}],
            }
            for place, version in enumerate(self.offered[name])
        ]
        return {"addons": [{"addonName": name, "addonVersions": versions}]}
