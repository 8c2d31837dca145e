"""Where charts come from, and how a changed one is noticed."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from spotladder.errors import EnvironmentFailure, InvalidSpec
from spotladder_infra.rollout import charts
from spotladder_infra.rollout.components import Chart


def written(folder: Path, name: str, version: str) -> Path:
    """A chart in a folder."""
    made = folder / name
    (made / "templates").mkdir(parents=True)
    (made / "Chart.yaml").write_text(f"name: {name}\nversion: {version}\n")
    return made


def packed(folder: Path, name: str, version: str, file: str) -> Path:
    """A packed chart."""
    made = written(folder / "source", name, version)
    with tarfile.open(folder / file, "w:gz") as archive:
        archive.add(made, arcname=name)
    return folder / file


def test_a_folder_has_charts_as_folders_or_packed(tmp_path: Path) -> None:
    written(tmp_path, "kuberay-operator", "1.6.1")
    packed(tmp_path, "jobset", "0.12.0", "jobset-v0.12.0.tgz")
    found = charts.find(Chart("kuberay-operator", "1.6.1", "https://example.com"), tmp_path, tmp_path)
    assert found.path == str(tmp_path / "kuberay-operator")
    assert charts.find(Chart("jobset", "0.12.0", "oci://example.com"), tmp_path, tmp_path).version == "0.12.0"


def test_the_digest_changes_with_the_content(tmp_path: Path) -> None:
    made = written(tmp_path, "a", "1.0.0")
    before = charts.digest_of(made)
    assert charts.digest_of(made) == before
    (made / "templates" / "x.yaml").write_text("x")
    assert charts.digest_of(made) != before


def test_own_charts_are_part_of_the_package(tmp_path: Path) -> None:
    assert charts.find(Chart("spotladder", "0.1.0"), None, tmp_path).version == "0.1.0"
    assert charts.find(Chart("spotladder", "0.1.0"), tmp_path, tmp_path).version == "0.1.0", (
        "the folder need not have it"
    )


def test_a_pulled_chart_is_kept(tmp_path: Path) -> None:
    source = "https://example.com"
    pulled = charts.kept_at(Chart("a", "1.0.0", source), tmp_path)
    packed(tmp_path, "a", "1.0.0", pulled.name)
    assert charts.find(Chart("a", "1.0.0", source), None, tmp_path).path == str(pulled)


@pytest.mark.parametrize(
    ("chart", "error", "message"),
    [
        (Chart("absent", "1.0.0", "https://x"), InvalidSpec, "has no chart absent: put absent/ or absent-1.0.0.tgz"),
        (Chart("a", "2.0.0", "https://x"), InvalidSpec, r"has version 1.0.0 \(expected 2.0.0\)"),
        (Chart("a", "1.0.0", "https://x", "00"), EnvironmentFailure, "expected sha256 00, got"),
        (Chart("broken", "1.0.0", "https://x"), InvalidSpec, "is not a packed chart"),
    ],
)  # fmt: skip
def test_bad_charts_are_named(tmp_path: Path, chart: Chart, error: type[Exception], message: str) -> None:
    written(tmp_path, "a", "1.0.0")
    (tmp_path / "broken-1.0.0.tgz").write_bytes(b"no archive")
    with pytest.raises(error, match=message):
        charts.find(chart, tmp_path, tmp_path)
