"""Token authentication of an attempt's Ray cluster. Without it, anyone who can reach the dashboard can run programs in
the cluster.

1. `authOptions` of the template decides: `{mode: disabled}` switches it off, `{mode: token, secretName: mine}` uses
   another Secret.
2. Otherwise it is on if the version of Ray is known, by `rayVersion` or by the tag of Ray's own image, and has been
   tested. KubeRay refuses tokens without `rayVersion`, and derives probes from it, so that the tag of another image,
   which may be the version of something else, does not count.
3. The token is in the Secret TOKEN of the namespace, which the controller creates and may read by its name: the token
   protects against other namespaces, not against the pods of its own. KubeRay gives it to Ray's containers and to the
   submitter. KubeRay 1.5.1 ignores the name and creates a Secret for each RayCluster; an older one ignores
   `authOptions`.
4. The dashboard of a cluster without a token is closed to other pods (`rayjob.ports`), whatever the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spotladder.versions import TESTED_RAY, parse
from spotladder.workloads.rayjob.version import given_version, own_image_version

TOKEN = "spotladder-ray-token"  # noqa: S105 – the name of a Secret
"""The Secret in the namespace of the attempts."""

KEY = "auth_token"
"""The key of the token in the Secret, as KubeRay expects it."""

_MODE = "token"


def authenticate(cluster: dict[str, Any]) -> None:
    """Let the rendered `rayClusterSpec` require the token unless the template decides, in place."""
    if cluster.get("authOptions") is None and (version := _tested_version(cluster)):
        cluster["authOptions"] = {"mode": _MODE, "secretName": TOKEN}
        cluster["rayVersion"] = cluster.get("rayVersion") or version


def is_open(cluster: Mapping[str, Any]) -> bool:
    """Whether Ray requires no token although the template does not switch it off: its version is unknown or too old."""
    return cluster.get("authOptions") is None and _tested_version(cluster) is None


def has_public_health(cluster: Mapping[str, Any]) -> bool:
    """Whether a probe of the kubelet, which cannot send a token, gets an answer."""
    return not requires_token(cluster) or _tested_version(cluster) is not None


def uses_token(objects: Iterable[Mapping[str, Any]]) -> bool:
    """Whether one of an attempt's rendered objects uses the Secret TOKEN."""
    clusters = ((body.get("spec") or {}).get("rayClusterSpec") or {} for body in objects)
    return any((cluster.get("authOptions") or {}).get("secretName") == TOKEN for cluster in clusters)


def requires_token(cluster: Mapping[str, Any]) -> bool:
    """Whether a rendered `rayClusterSpec` requires a token."""
    return (cluster.get("authOptions") or {}).get("mode") == _MODE


def _tested_version(cluster: Mapping[str, Any]) -> str | None:
    """The version of Ray; None if it is unknown, or older than the tested versions."""
    version = given_version(cluster) if cluster.get("rayVersion") else own_image_version(cluster)
    return version if version is not None and parse(version)[:2] >= parse(TESTED_RAY[0])[:2] else None
