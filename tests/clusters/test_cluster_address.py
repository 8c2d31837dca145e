from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from spotladder.operator.settings import read_settings


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
