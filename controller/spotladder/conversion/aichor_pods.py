"""The pods of an AIchor manifest."""

from __future__ import annotations

from typing import Any

from spotladder.conversion.draft import plain
from spotladder.conversion.source import Source


class AichorPods:
    """Makes the pod templates of a manifest."""

    def __init__(self, source: Source, image: str, claims: list[dict[str, Any]]) -> None:
        self.source, self.notes = source, list[str]()
        self._image, self._claims = image, claims
        if claims:
            self.notes.append(
                "All pods mount the PersistentVolumeClaims: they need ReadWriteMany, and nodes that reach the volumes."
            )

    def template(self, given: dict[str, Any], name: str) -> dict[str, Any]:
        """The pod template of a type; a head or a worker group."""
        resources = dict(given.get("resources") or {})
        cpus = _number(resources.pop("cpus", None))
        memory = _number(resources.pop("memory", None)) or cpus * (_number(resources.pop("ramRatio", None)) or 2)
        requests = {**({"cpu": f"{cpus:g}"} if cpus else {}), **({"memory": f"{memory:g}G"} if memory else {})}
        shared, mounts, volumes = resources.pop("shmSizeGB", None), [], []
        if shared:
            mounts.append({"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108 – a path in the pod
            volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{shared}G"}})
        for claim in self._claims:
            mounts.append({"name": claim["name"], "mountPath": claim["mountPoint"]})
            volumes.append({"name": claim["name"], "persistentVolumeClaim": {"claimName": claim["name"]}})
        limits = self._accelerators(resources.pop("accelerators", None) or {}, name)
        container: dict[str, Any] = {"name": "program", "image": self._image}
        if requests or limits:
            container["resources"] = {"requests": requests, **({"limits": limits} if limits else {})}
        if mounts:
            container["volumeMounts"] = mounts
        for key, value in resources.items():
            self.notes.append(f"Removed spec.types.{name}.resources.{key}: {plain(value)}. Set limits if they matter.")
        return {"spec": {"containers": [container], **({"volumes": volumes} if volumes else {})}}

    def _accelerators(self, given: dict[str, Any], name: str) -> dict[str, Any]:
        gpu = dict(given.get("gpu") or {})
        if not gpu.get("count"):
            return {}
        if product := gpu.get("product"):
            self.notes.append(f"{name} ran on {plain(product)}: the CapacityTiers choose such nodes (instanceTypes).")
        return {f"nvidia.com/{gpu.get('type') or 'gpu'}": gpu["count"]}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
