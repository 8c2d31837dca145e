"""The node image of pools on EKS that name none.

It is pinned: with `al2023@latest`, Karpenter would mark every node as drifted when AWS publishes an image, and the
nodes of one gang could have different images. For a newer image, change `NODE_IMAGE` (or `image` of a pool) and roll it
out; running nodes keep their image until they are empty. docs/upgrade.md has the command that prints the newest image.

The dates are those of github.com/awslabs/amazon-eks-ami/releases: about every week one release for all supported
Kubernetes versions. AWS deprecates an image two years after its release; security fixes are the reason to be earlier.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

NODE_IMAGE = "al2023@v20260903"
"""Release of 3 September 2026."""

NEWEST_KUBERNETES = "1.36"
"""The newest minor version of Kubernetes for which that release has images."""

OLDEST = timedelta(days=120)
"""Age of an image at which validation warns."""

ALIAS = re.compile(r"(al2023|bottlerocket)@(?:latest|v[0-9]{8}|v?[0-9]+\.[0-9]+\.[0-9]+)")
"""The form of an alias in Karpenter: a family and a release."""

_DATED = re.compile(r"[a-z0-9]+@v([0-9]{8})")


def released(alias: str) -> date | None:
    """The date in an alias such as `al2023@v20260903`; None for an alias without a date."""
    found = _DATED.fullmatch(alias)
    if found is None:
        return None
    try:
        return datetime.strptime(found[1], "%Y%m%d").replace(tzinfo=UTC).date()
    except ValueError:
        return None
