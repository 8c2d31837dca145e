"""Waits for conditions of a TieredJob."""

from __future__ import annotations

from typing import Any

from tests.kube.world import KubeWorld, eventually


async def message_of(kube: KubeWorld, kind: str, status: str, reason: str, name: str = "digits") -> str:
    """Wait until the condition has this status and reason, and its Event exists. Returns the condition's message."""

    async def condition() -> Any:
        found = await kube.condition(kind, name)
        return (found.get("status"), found.get("reason")) == (status, reason) and found

    found = await eventually(condition)
    if reason not in ("Valid", "AsExpected"):

        async def reported() -> bool:
            return reason in await kube.events(name)

        await eventually(reported)
    return str(found["message"])
