"""The versions that work together: Kubernetes, Karpenter, KubeRay and Ray, and how long each cloud supports a minor.

One table for the infrastructure's checks, the platform's pins and the controller's preflight. Standard library only.

Sources, read on `AS_OF`: karpenter.sh/docs/upgrading/compatibility, docs.ray.io (KubeRay upgrade guide),
docs.aws.amazon.com/eks (release calendar), endoflife.date/amazon-eks and endoflife.date/google-kubernetes-engine (from
cloud.google.com/kubernetes-engine/docs/release-schedule). The dates of GKE are estimates of Google for the Regular
channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from types import MappingProxyType

AS_OF = date(2026, 11, 30)

KUBERNETES = "1.35"
"""The minor version of a cluster whose topology names none."""

KARPENTER = "1.15.2"
KARPENTER_GCP = "0.5.0"
KUBERAY = "1.6.1"
RAY = "2.58.0"

END_OF_SUPPORT_NOTICE = timedelta(days=60)
"""A minor whose standard support ends sooner than this is reported."""

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """A Kubernetes minor version. `eks_until` and `gke_until` are the ends of standard support; None if not published
    yet."""

    minor: str
    karpenter: str
    eks_until: date | None
    gke_until: date | None


SUPPORTED: Mapping[str, Kubernetes] = MappingProxyType(
    {
        entry.minor: entry
        for entry in (
            Kubernetes("1.33", "1.5", date(2026, 7, 29), date(2026, 8, 3)),
            Kubernetes("1.34", "1.6", date(2026, 12, 2), date(2026, 10, 1)),
            Kubernetes("1.35", "1.9", date(2027, 3, 27), date(2027, 4, 11)),
            Kubernetes("1.36", "1.13", date(2027, 8, 2), None),
            Kubernetes("1.37", "1.15", None, None),
        )
    }
)
"""Each minor with the oldest Karpenter that supports it."""

TESTED_RAY = ("2.58.0", "2.60.0")
"""The oldest and the newest Ray with which every test of `make test-ray` has passed, though not all in one run:
pyproject.toml allows their minors and those between them."""

OLDEST_RAY: Mapping[str, str] = MappingProxyType({"1.5": "2.38", "1.6": "2.38"})
"""Each supported minor of KubeRay with the oldest Ray that it supports."""


def parse(version: str) -> Version:
    """`v1.35.2` as `(1, 35, 2)`. Raises ValueError for text that is not a version."""
    return tuple(int(part) for part in version.removeprefix("v").split("."))


def conflicts(
    *, kubernetes: str | None, karpenter: str | None = None, kuberay: str | None = KUBERAY, ray: str | None = RAY
) -> tuple[str, ...]:
    """Why these versions do not work together, one sentence each; empty when they do. None is not compared, and neither
    is a version of Kubernetes or KubeRay that is newer than the table, which `untested` names.

    Args:
        kubernetes: A minor such as `1.35`.
        karpenter: None for a cluster without the Karpenter of AWS.
        kuberay, ray: Versions such as `1.6.1`.
    """
    found = []
    known = SUPPORTED.get(kubernetes) if kubernetes is not None else None
    if kubernetes is not None and known is None and not _newer(kubernetes, SUPPORTED):
        found.append(f"Kubernetes {kubernetes} is not supported: choose one of {', '.join(SUPPORTED)}")
    elif known is not None and karpenter is not None and parse(karpenter) < parse(known.karpenter):
        found.append(
            f"Karpenter {karpenter} does not support Kubernetes {kubernetes}: use Karpenter {known.karpenter} or newer"
        )
    if kuberay is None:
        return tuple(found)
    oldest = OLDEST_RAY.get(_minor(kuberay))
    if oldest is None:
        if _newer(kuberay, OLDEST_RAY):
            return tuple(found)
        found.append(f"KubeRay {kuberay} is not supported: choose one of {', '.join(OLDEST_RAY)}")
    elif ray is not None and parse(ray) < parse(oldest):
        found.append(f"KubeRay {kuberay} does not support Ray {ray}: use Ray {oldest} or newer")
    return tuple(found)


def untested(kubernetes: str) -> str:
    """That this Kubernetes is newer than the table, which is allowed; "" if it is not."""
    if not _newer(kubernetes, SUPPORTED):
        return ""
    tested = f"the tested versions {', '.join(SUPPORTED)} (table of {AS_OF})"
    return f"Kubernetes {kubernetes} is newer than {tested}: try it in one cluster first"


def _minor(version: str) -> str:
    return ".".join(version.removeprefix("v").split(".")[:2])


def _newer(version: str, table: Mapping[str, object]) -> bool:
    """Whether the minor of this version is newer than all of the table."""
    return parse(_minor(version)) > max(map(parse, table))


def standard_support_ends(kubernetes: str, cloud: str) -> date | None:
    """Last day of the minor's standard support on `aws` or `gcp`; None where that is unknown or does not apply."""
    known = SUPPORTED.get(kubernetes)
    return None if known is None else {"aws": known.eks_until, "gcp": known.gke_until}.get(cloud)
