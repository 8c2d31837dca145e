"""The pinned EKS add-ons: the table, its overrides, and a Kubernetes version without a record."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder import versions
from spotladder.errors import InvalidSpec
from spotladder_infra.facts import addons
from spotladder_infra.topology.addon_checks import installed, version_of
from tests.topology.builders import fleet_file

PLACE = "    bucket: acme-east\n"


def test_supported_kubernetes_versions_have_a_record() -> None:
    """Except those of which AWS has published no versions of add-ons."""
    assert set(versions.SUPPORTED) - set(addons.PINNED) == {"1.37"}
    assert set(addons.PINNED) - set(versions.SUPPORTED) == set()
    for minor, pinned in addons.PINNED.items():
        assert set(pinned) == set(addons.INSTALLED)
        assert pinned["kube-proxy"].startswith(f"v{minor}.")


def test_the_fleet_file_overrides_the_table(tmp_path: Path) -> None:
    east = fleet_file(tmp_path, (PLACE, f"{PLACE}    addons: {{coredns: v1.13.2-eksbuild.1}}\n")).fleet.cluster("east")
    assert version_of(east, "coredns") == "v1.13.2-eksbuild.1"
    assert version_of(east, "vpc-cni") == addons.PINNED["1.35"]["vpc-cni"]


def test_an_addon_is_installed_if_the_file_names_it(tmp_path: Path) -> None:
    named = "    addons: {aws-efs-csi-driver: v2.1.0-eksbuild.1}\n"
    volume = "    volumes: [{name: data, spec: {csi: {driver: efs.csi.aws.com, volumeHandle: fs-1}}}]\n"
    east = fleet_file(tmp_path, (PLACE, f"{PLACE}{named}{volume}")).fleet.cluster("east")
    assert set(installed(east)) - set(addons.INSTALLED) == {"aws-efs-csi-driver"}
    with pytest.raises(InvalidSpec, match=r"volumes\[0\]\.spec: needs the EKS add-on aws-efs-csi-driver: name it"):
        fleet_file(tmp_path, (PLACE, f"{PLACE}{volume}"))


def test_an_addon_that_the_stack_does_not_install(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=r"addons\.core-dns: is not an add-on that the stack installs"):
        fleet_file(tmp_path, (PLACE, f"{PLACE}    addons: {{core-dns: v1.13.2-eksbuild.1}}\n"))


def test_a_kubernetes_version_without_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {name: version for name, version in addons.PINNED["1.35"].items() if name != "coredns"}
    monkeypatch.setattr(addons, "PINNED", {"1.35": known})
    found = fleet_file(tmp_path)
    assert version_of(found.fleet.cluster("east"), "coredns") is None
    expected = f"no recorded version of the EKS add-ons coredns (table of {addons.AS_OF}): EKS chooses its default"
    assert any(expected in str(problem) for problem in found.warnings)
    pinned = fleet_file(tmp_path, (PLACE, f"{PLACE}    addons: {{coredns: v1.13.2-eksbuild.1}}\n"))
    assert not any("EKS add-ons" in str(problem) for problem in pinned.warnings)
