"""The last good rollouts of a cluster, in a ConfigMap of that cluster: every machine reads the same record."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from pydantic import TypeAdapter, ValidationError

from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout.components import SYSTEM
from spotladder_infra.rollout.tools import Tools

NAME = "spotladder-rollout"
KEPT = 5
"""Maximum number of good rollouts that are stored."""


@dataclass(frozen=True, slots=True)
class InstalledRelease:
    """A release of a rollout. `values` is JSON; `revision` is Helm's, 0 if it is not known."""

    resource: str
    release: str
    namespace: str
    chart: str
    version: str
    digest: str
    values: str
    revision: int

    @property
    def inputs(self) -> dict[str, str]:
        """The properties by which Pulumi notices a change."""
        return {name: value for name, value in asdict(self).items() if name not in ("resource", "revision")}


@dataclass(frozen=True, slots=True)
class PlatformState:
    """What a rollout installs in a cluster, or has installed there. `releases` are in the order of installation."""

    releases: tuple[InstalledRelease, ...]
    crds: tuple[tuple[str, str, str], ...] = ()
    """Chart, version and digest of each set of CRDs."""

    at: str = ""
    """The ISO time at which the cluster was healthy after the rollout."""

    smoke: bool = False
    """Whether the smoke job has succeeded then."""

    @property
    def revisions(self) -> dict[str, int]:
        """Helm's revisions by release."""
        return {entry.release: entry.revision for entry in self.releases}


class NoGoodRollout(EnvironmentFailure):
    """A cluster has no good rollout to upgrade, or to go back to: the same command would fail again."""


_GOODS = TypeAdapter(list[PlatformState])


def read(tools: Tools) -> list[PlatformState]:
    """The good rollouts of a cluster, oldest first. Raises EnvironmentFailure if the record was damaged."""
    found = tools.get("configmap", NAME, "--namespace", SYSTEM)
    data: dict[str, str] = (found or {}).get("data", {})
    try:
        return _GOODS.validate_json(data.get("good", "[]"))
    except ValidationError as error:
        why = error.errors(include_url=False)[0]["msg"]
        raise EnvironmentFailure(
            f"context {tools.target.context}: ConfigMap {NAME} in namespace {SYSTEM} cannot be read ({why}): correct "
            "or delete it; without it, there is no earlier rollout to go back to"
        ) from None


def write(tools: Tools, goods: list[PlatformState]) -> None:
    """Write the newest good rollouts to the ConfigMap."""
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": SYSTEM, "labels": {"app.kubernetes.io/part-of": "spotladder"}},
        "data": {"good": _GOODS.dump_json(goods[-KEPT:], indent=1).decode()},
    }
    tools.apply(json.dumps(document))


def add(tools: Tools, good: PlatformState) -> bool:
    """Records a good rollout; one with the same revisions as the newest replaces it.

    Returns whether the cluster was not recorded as good in this state before. If it was, the earlier time stays.
    """
    known = read(tools)
    newest = known[-1] if known else None
    if newest is not None and (newest.releases, newest.crds) == (good.releases, good.crds):
        if good.smoke and not newest.smoke:
            write(tools, [*known[:-1], replace(newest, smoke=True)])
        return False
    if newest is not None and newest.revisions == good.revisions:
        known.pop()
    write(tools, [*known, good])
    return True


def digest_of(goods: list[PlatformState], chart: str, version: str) -> str:
    """The digest of the chart that good rollouts installed, as a release or for its CRDs; "" if none did."""
    for good in reversed(goods):
        listed = [*good.crds, *((entry.chart, entry.version, entry.digest) for entry in good.releases)]
        for name, installed, digest in listed:
            if (name, installed) == (chart, version):
                return digest
    return ""


def target(goods: list[PlatformState], live: dict[str, int]) -> PlatformState | None:
    """The good rollout to restore: the newest one that differs from the live revisions; None without such a rollout.

    `live` are the revisions of the releases that rollouts install, without those of others.
    """
    if goods and goods[-1].revisions != live:
        return goods[-1]
    return goods[-2] if len(goods) > 1 else None
