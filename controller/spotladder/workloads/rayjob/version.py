"""The Ray version of an attempt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spotladder.workloads.program_container import program_name
from spotladder.workloads.rayjob.records import RAYJOBS
from spotladder.workloads.security import is_ray_image

_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+){1,2}")
_TAG = re.compile(r":v?([0-9]+\.[0-9]+\.[0-9]+)(?:[-.@]|$)")


def ray_version(rendered: Iterable[Mapping[str, Any]]) -> str | None:
    """The Ray version that KubeRay would run: that of the RayJob, else of the head's image; None if neither has one."""
    for body in rendered:
        if body.get("kind") != RAYJOBS.kind:
            continue
        cluster = (body.get("spec") or {}).get("rayClusterSpec") or {}
        return given_version(cluster) if cluster.get("rayVersion") else _tag(_head_images(cluster))
    return None


def given_version(cluster: Mapping[str, Any]) -> str | None:
    """The version in `rayVersion` of a `rayClusterSpec`; None without one, or if it is not a number."""
    found = _NUMBERS.match(str(cluster.get("rayVersion") or ""))
    return found[0] if found else None


def own_image_version(cluster: Mapping[str, Any]) -> str | None:
    """The version in the tag of the head's image, if it is one of Ray's own images."""
    return _tag(filter(is_ray_image, _head_images(cluster)))


def _head_images(cluster: Mapping[str, Any]) -> Iterator[str]:
    pod = (cluster.get("headGroupSpec") or {}).get("template") or {}
    ray = program_name(pod)
    containers = (pod.get("spec") or {}).get("containers") or ()
    return (str(container.get("image", "")) for container in containers if container.get("name", "") == ray)


def _tag(images: Iterable[str]) -> str | None:
    return next((tag[1] for image in images if (tag := _TAG.search(image))), None)
