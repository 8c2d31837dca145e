from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.clusters.cluster_address import ClusterAddress, parse_flag
from spotladder.errors import InvalidSpec
from spotladder.operator.settings import read_settings


@pytest.mark.parametrize(
    ("flag", "written"),
    [
        ("east=secret:cluster-east", {"kubeconfig": {"secretName": "cluster-east"}}),
        ("east=kubeconfig:/etc/east", {"kubeconfig": {"file": "/etc/east"}}),
        ("east=kubeconfig:/etc/a=b#admin", {"kubeconfig": {"file": "/etc/a=b", "context": "admin"}}),
        ("east=eks:us-west-2/training", {"eks": {"region": "us-west-2", "name": "training"}}),
        (
            "east=gke:ml/europe-west4/training",
            {"gke": {"project": "ml", "location": "europe-west4", "name": "training"}},
        ),
    ],
)
def test_a_flag_is_equivalent_to_its_settings(flag: str, written: dict[str, object]) -> None:
    assert parse_flag(flag) == ("east", ClusterAddress.model_validate(written))


@pytest.mark.parametrize(
    "flag", ["", "east", "east=", "=eks:a/b", "east=eks:training", "east=gke:a/b", "east=gke:a//b", "east=aks:a/b",
             "east=secret:", "east=secret:ns/name"]
)  # fmt: skip
def test_an_invalid_cluster_flag_is_rejected_with_the_format(flag: str) -> None:
    with pytest.raises(InvalidSpec, match="NAME=eks:REGION/NAME"):
        parse_flag(flag)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clusters: {east: {}}", "exactly one of kubeconfig, eks and gke"),
        ("clusters: {east: {eks: {name: a, region: b}, gke: {project: a, location: b, name: c}}}", "exactly one"),
        ("clusters: {east: {kubeconfig: {}}}", "exactly one of secretName and file"),
        ("clusters: {east: {eks: {name: a}}}", "region"),
        ("clusters: {home: {eks: {name: a, region: b}}}", "home is the name of the home cluster"),
        ("clusters: {East: {eks: {name: a, region: b}}}", "clusters"),
    ],
)
def test_invalid_cluster_settings_are_rejected(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(InvalidSpec, match=said):
        read_settings(file, {})


def test_flags_extend_and_override_the_clusters_of_the_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("clusters: {east: {eks: {name: a, region: b}}, west: {eks: {name: c, region: d}}}")
    found = read_settings(file, {"clusters": dict([parse_flag("west=secret:west")])}).clusters
    assert list(found) == ["east", "west"]
    assert found["west"].kubeconfig is not None
