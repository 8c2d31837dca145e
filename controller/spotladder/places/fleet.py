"""A cluster of the fleet: whether it answers, and what is installed in it, as far as the user may read it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spotladder.clusters.errors import ApiError, Forbidden, Unauthorized
from spotladder.errors import SpotladderError
from spotladder.installed import DEPLOYMENTS, installed
from spotladder.places.attempt_output import is_home
from spotladder.resources import TIEREDJOBS
from spotladder.workloads.jobset.records import JOBSETS
from spotladder.workloads.rayjob.records import RAYJOBS

if TYPE_CHECKING:
    from spotladder.clusters.client import Client

TIMEOUT = 10.0
"""Seconds after which a cluster counts as unreachable."""

CONTROLLERS = "app.kubernetes.io/part-of=spotladder,app.kubernetes.io/component=controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSeen:
    """A cluster, with the versions of its components, "" where one is unknown. `kinds` are the kinds of jobs that it
    serves, each with its version; `problem` is one line, "" without one."""

    name: str
    home: bool
    reachable: bool = True
    kubernetes: str = ""
    kuberay: str = ""
    karpenter: str = ""
    controller: str = ""
    kinds: tuple[str, ...] = ()
    problem: str = ""


def names_of_clusters(tiers: Iterable[Mapping[str, Any]], jobs: Iterable[Mapping[str, Any]]) -> set[str]:
    """The names of the members that these CapacityTiers and TieredJobs use."""
    used = {str((tier.get("spec") or {}).get("cluster") or "") for tier in tiers}
    used |= {str((job.get("status") or {}).get("cluster") or "") for job in jobs}
    return {name for name in used if not is_home(name)}


async def seen(client: Client, name: str, *, home: bool) -> ClusterSeen:
    """The cluster as it is now. Never raises for a cluster that does not answer."""
    try:
        async with asyncio.timeout(TIMEOUT):
            return await _seen(client, name, home=home)
    except TimeoutError:
        return lost(name, f"the API server does not answer in {TIMEOUT:g} s", home=home)
    except Unauthorized:
        return lost(name, "the cluster rejects the credentials of its context: log in again", home=home)
    except SpotladderError as error:
        return lost(name, str(error), home=home)


def lost(name: str, problem: str, *, home: bool = False) -> ClusterSeen:
    """A cluster that cannot be reached."""
    return ClusterSeen(name=name, home=home, reachable=False, problem=problem)


async def _seen(client: Client, name: str, *, home: bool) -> ClusterSeen:
    versions, controllers, *served = await asyncio.gather(
        installed(client),
        _controllers(client) if home else _none(),
        *(client.exists(kind) for kind in (TIEREDJOBS, RAYJOBS, JOBSETS)),
    )
    kinds = [kind for kind, is_served in zip((TIEREDJOBS, RAYJOBS, JOBSETS), served, strict=True) if is_served]
    problems = [
        "TieredJobs are not installed: helm install spotladder-crds" if home and TIEREDJOBS not in kinds else "",
        "neither RayJobs nor JobSets are installed" if not {RAYJOBS, JOBSETS} & set(kinds) else "",
        _unready(controllers) if home else "",
        *versions.conflicts(),
    ]
    return ClusterSeen(
        name=name,
        home=home,
        kubernetes=versions.kubernetes or "",
        kuberay=versions.kuberay or "",
        karpenter=versions.karpenter or "",
        controller=", ".join(sorted({_version(each) for each in controllers or ()})),
        kinds=tuple(f"{kind.kind} {kind.version}" for kind in kinds),
        problem=next(filter(None, problems), ""),
    )


async def _none() -> None:
    return None


async def _controllers(client: Client) -> list[dict[str, Any]] | None:
    """The Deployments of the controller in all namespaces; None if the user may not list them."""
    try:
        return [each async for page in client.pages(DEPLOYMENTS, labels=CONTROLLERS) for each in page.items]
    except Forbidden:
        return None
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def _unready(controllers: list[dict[str, Any]] | None) -> str:
    if controllers is None:
        return ""
    if not controllers:
        return "the controller is not installed: helm install spotladder"
    unready = [each for each in controllers if not (each.get("status") or {}).get("readyReplicas")]
    return "; ".join(
        "no pod of the controller is ready (Deployment {namespace}/{name})".format(**each["metadata"])
        for each in unready
    )


def _version(deployment: dict[str, Any]) -> str:
    return str((deployment["metadata"].get("labels") or {}).get("app.kubernetes.io/version", "?"))
