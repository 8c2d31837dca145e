"""A hop of the bring-up, and the search for what allows it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spotladder_infra.rollout.plan import Values, plan
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.defaults import accelerators_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool


@dataclass(frozen=True, slots=True)
class Hop:
    """A step of the bring-up. `allowed_by` are addresses of resources of the stack, or objects and values of a release.
    The hop fails if one of its `needs` is met by none; these are `missing`."""

    step: str
    allowed_by: tuple[str, ...]
    missing: tuple[str, ...] = ()


def hop(step: str, **needs: Sequence[str]) -> Hop:
    """A hop that has these needs, by name, each with what meets it."""
    met = tuple(dict.fromkeys(entry for found in needs.values() for entry in found))
    return Hop(step, met, tuple(name.replace("_", " ") for name, found in needs.items() if not found))


class PlannedCluster:
    """The stack of a cluster, given as its `cdk.tf.json`, and its releases."""

    def __init__(self, fleet: Fleet, cluster: Cluster, stack: Mapping[str, Any]) -> None:
        self.fleet = fleet
        self.cluster = cluster
        self._data: Mapping[str, Any] = stack.get("data", {})
        self.resources: Mapping[str, Mapping[str, Any]] = stack["resource"]
        self._values = {step.name: step.values for step in plan(fleet, cluster).releases}

    @property
    def existing_network(self) -> list[str]:
        """The user's own network, if the fleet file names one, or that of the user's own cluster."""
        named = self.cluster.network.existing is not None
        return ["network.existing, which is yours"] if named else self.existing_cluster

    @property
    def existing_cluster(self) -> list[str]:
        """The user's own cluster, if the fleet file names one and the stack reads it."""
        kind = "aws_eks_cluster" if self.cluster.cloud is Cloud.AWS else "google_container_cluster"
        found = self.cluster.existing is not None and kind in self._data
        return [f"data.{kind}.cluster, which is yours"] if found else []

    @property
    def mirror(self) -> list[str]:
        """The registry mirror, if the fleet file names one."""
        return ["platform.mirror"] if self.fleet.spec.platform.mirror else []

    def having(self, kind: str, *parts: str) -> list[str]:
        """The addresses of the resources of a type whose arguments, as JSON, have all of these parts."""
        found = self.resources.get(kind, {}).items()
        texts = ((name, json.dumps({key: value for key, value in body.items() if key != "//"})) for name, body in found)
        return [f"{kind}.{name}" for name, text in texts if all(part in text for part in parts)]

    def policy(self, name: str) -> Mapping[str, Any]:
        """The inline policy of a role. If the role has none, the policy has no statements."""
        body = self.resources.get("aws_iam_role_policy", {}).get(name)
        found: Mapping[str, Any] = json.loads(body["policy"]) if body else {"Statement": []}
        return found

    def release(self, component: str, *parts: str) -> list[str]:
        """The release, if it is installed with values that, as JSON, have all of these parts."""
        values = self._values.get(component)
        text = json.dumps(values)
        return [f"release {component}"] if values is not None and all(part in text for part in parts) else []

    def pools(self, key: str, pool: Pool, *parts: str) -> list[str]:
        """The objects of a pool under a key of the chart of the pools that have all of these parts."""
        listed: list[Values] = self._values["pools"][key]
        found = [entry for entry in listed if entry["metadata"]["name"] == pool.name]
        return [f"{entry['kind']}/{pool.name}" for entry in found if all(part in json.dumps(entry) for part in parts)]

    def with_accelerators(self, vendor: str) -> Iterator[Pool]:
        """The pools with accelerators whose name begins with this: `nvidia` or `tpu`."""
        for pool in self.cluster.pools:
            if any(kind.startswith(vendor) for kind in accelerators_of(self.cluster, pool)):
                yield pool


def both(*found: Sequence[str]) -> list[str]:
    """All of these, if none of them is empty."""
    return [entry for part in found for entry in part] if all(found) else []
