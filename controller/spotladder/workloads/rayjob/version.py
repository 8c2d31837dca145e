"""The Ray version of an attempt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from spotladder.workloads.rayjob.records import RAYJOBS

_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+){1,2}")
_TAG = re.compile(r":v?([0-9]+\.[0-9]+\.[0-9]+)(?:[-.@]|$)")


def ray_version(rendered: Iterable[Mapping[str, Any]]) -> str | None:
    """The Ray version that KubeRay would run: that of the RayJob, else of the head's image; None if neither has one."""
    for body in rendered:
        if body.get("kind") != RAYJOBS.kind:
            continue
        spec = (body.get("spec") or {}).get("rayClusterSpec") or {}
        if version := spec.get("rayVersion"):
            found = _NUMBERS.match(str(version))
            return found[0] if found else None
        pod = ((spec.get("headGroupSpec") or {}).get("template") or {}).get("spec") or {}
        for container in pod.get("containers") or ():
            if tag := _TAG.search(str(container.get("image", ""))):
                return tag[1]
    return None
