"""The sources of charts, and the detection of a changed chart."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from spotladder.errors import EnvironmentFailure, InvalidSpec
from spotladder_infra.rollout import charts, components
from spotladder_infra.rollout.components import OWN, Chart
from tests.docs.markdown import ROOT
from tests.topology.digests import lines, pinned_charts
from tests.topology.programs import program


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


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="nowhere: is not a folder: name one with the charts"):
        charts.find(Chart("kuberay-operator", "1.6.1", "https://example.com"), tmp_path / "nowhere", tmp_path)


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
        (
            Chart("packed", "1.0.0", "https://x", "00"),
            EnvironmentFailure,
            r"packed-1.0.0.tgz: is not the published chart packed 1.0.0 \(expected sha256 00, got [0-9a-f]{64}\)",
        ),
        (Chart("broken", "1.0.0", "https://x"), InvalidSpec, "is not a packed chart"),
    ],
)  # fmt: skip
def test_bad_charts_are_named(tmp_path: Path, chart: Chart, error: type[Exception], message: str) -> None:
    written(tmp_path, "a", "1.0.0")
    packed(tmp_path, "packed", "1.0.0", "packed-1.0.0.tgz")
    (tmp_path / "broken-1.0.0.tgz").write_bytes(b"no archive")
    with pytest.raises(error, match=message):
        charts.find(chart, tmp_path, tmp_path)


def test_a_chart_that_cannot_be_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_helm(tmp_path, monkeypatch, 'echo "Error: no such host" >&2; exit 1')
    message = r"cannot be downloaded \(helm pull a: Error: no such host\): specify a folder"
    with pytest.raises(EnvironmentFailure, match=message):
        charts.find(Chart("a", "1.0.0", "https://x"), None, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == [], "nothing is left of the attempt"


def test_a_download_with_another_content_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = packed(tmp_path, "a", "1.0.0", "a-1.0.0.tgz")
    fake_helm(tmp_path, monkeypatch, f'for last; do :; done; cp {source} "$last"')
    digest = charts.digest_of(source)
    assert charts.find(Chart("a", "1.0.0", "https://x", digest), None, tmp_path / "first").digest == digest
    wanted = Chart("a", "1.0.0", "https://x", "00")
    with pytest.raises(EnvironmentFailure, match=r"^https://x: is not the published chart a 1\.0\.0"):
        charts.find(wanted, None, tmp_path / "second")
    assert list((tmp_path / "second").iterdir()) == [], "the download is not kept"


def test_the_digests_of_public_charts_are_printed_from_downloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = packed(tmp_path, "a", "1.0.0", "a-1.0.0.tgz")
    fake_helm(tmp_path, monkeypatch, f'for last; do :; done; cp {source} "$last"')
    public = Chart("a", "1.0.0", "https://x")
    assert list(lines([Chart("own", "1.0.0"), public])) == [f'"a-1.0.0.tgz": "{charts.digest_of(source)}",']


def test_every_digest_belongs_to_a_pinned_chart() -> None:
    """A digest of another version would never be compared."""
    pinned = {entry.file: entry.digest for entry in pinned_charts()}
    assert {name: pinned[name] for name in components.DIGESTS} == components.DIGESTS


def test_the_page_names_every_public_chart() -> None:
    """The table of docs/rollout.md."""
    page = (ROOT / "docs" / "rollout.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:3] == "| `"]
    documented = {
        (name.strip("` "), version, source.strip("`"), checked)
        for names, version, source, checked in (row for row in rows if len(row) == 4)
        for name in names.partition("(")[0].split(",")
    }
    pinned = {
        (entry.name, entry.version, entry.source, "pinned digest" if entry.digest else "first rollout")
        for entry in pinned_charts()
        if entry.source != OWN
    }
    assert documented == pinned


def fake_helm(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A helm that runs a script, first on the PATH."""
    helm = program(folder / "bin", "helm", script)
    monkeypatch.setenv("PATH", f"{helm.parent}:/usr/bin:/bin")
