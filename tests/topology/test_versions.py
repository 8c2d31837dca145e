"""The version matrix: compatible versions, and that the pinned versions are compatible and stay supported."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from spotladder import versions


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"kubernetes": "1.35", "karpenter": "1.9.0"}, ()),
        ({"kubernetes": "1.35", "karpenter": "1.8.3"}, ("Karpenter 1.8.3 does not support Kubernetes 1.35",)),
        ({"kubernetes": "1.36", "karpenter": "1.12.1"}, ("use Karpenter 1.13 or newer",)),
        ({"kubernetes": "1.36"}, ()),
        ({"kubernetes": "1.37", "karpenter": "1.14.1"}, ("use Karpenter 1.15 or newer",)),
        ({"kubernetes": "1.41", "kuberay": "1.9.0", "karpenter": "1.14.0"}, ()),
        ({"kubernetes": "1.20"}, ("Kubernetes 1.20 is not supported",)),
        ({"kubernetes": "1.35", "kuberay": "1.3.0"}, ("KubeRay 1.3.0 is not supported",)),
        ({"kubernetes": "1.35", "ray": "2.9.0"}, ("use Ray 2.38 or newer",)),
    ],
)
def test_matrix(found: dict[str, str], expected: tuple[str, ...]) -> None:
    messages = versions.conflicts(**found)
    assert len(messages) == len(expected)
    assert all(part in message for part, message in zip(expected, messages, strict=True))


def test_a_version_newer_than_the_table_is_named_and_allowed() -> None:
    assert versions.untested("1.41").startswith("Kubernetes 1.41 is newer")
    assert versions.untested("1.37") == versions.untested("1.20") == ""


def test_the_pinned_versions_are_compatible() -> None:
    assert versions.conflicts(kubernetes=versions.KUBERNETES, karpenter=versions.KARPENTER) == ()


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_the_default_version_is_supported_for_two_more_months(cloud: str) -> None:
    """When this fails, choose a newer default: users would get a cluster that soon costs more."""
    ends = versions.standard_support_ends(versions.KUBERNETES, cloud)
    assert ends is not None
    assert ends - datetime.now(UTC).date() > timedelta(days=60)
