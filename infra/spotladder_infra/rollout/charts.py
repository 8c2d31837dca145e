"""Finds the charts of a rollout: in this package, in a folder, or in their public repositories.

A chart becomes a local file or folder with a digest before anything is changed, so that an unreachable repository
stops a rollout at its beginning, and a chart that changed under its version is noticed.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from spotladder.errors import EnvironmentFailure, InvalidSpec
from spotladder_infra.programs import CommandFailure
from spotladder_infra.rollout.components import OWN, Chart
from spotladder_infra.rollout.tools import OFFLINE

_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class LocalChart:
    """A chart on this machine. `digest` is the SHA-256 of its files' names and contents."""

    path: str
    version: str
    digest: str


def find(chart: Chart, folder: Path | None, cache: Path) -> LocalChart:
    """The chart from `folder` if that is given, else from this package, or from its repository through `cache`.

    A packed chart must have the pinned digest. An unpacked chart in `folder` is the user's own.

    Raises:
        InvalidSpec: The folder does not have it, or has another version.
        EnvironmentFailure: It cannot be downloaded, or its content is not the pinned one.
    """
    if folder is not None:
        path = _in_folder(chart, folder)
    elif chart.source == OWN:
        path = _own(chart)
    else:
        path = _pulled(chart, cache)
    version = _version(path)
    if version.removeprefix("v") != chart.version.removeprefix("v"):
        raise InvalidSpec(f"has version {version} (expected {chart.version}): use that version", where=str(path))
    digest = digest_of(path)
    if path.is_file():
        _published(chart, digest, str(path))
    return LocalChart(str(path), version, digest)


def _published(chart: Chart, digest: str, where: str) -> None:
    """Raises EnvironmentFailure if the digest differs from the pinned one."""
    if chart.digest and digest != chart.digest:
        raise EnvironmentFailure(
            f"{where}: is not the published chart {chart.name} {chart.version} (expected sha256 {chart.digest}, got "
            f"{digest}): do not install it; to install a chart that you have changed, unpack it as {chart.name}/ in "
            "a folder and name the folder with --charts"
        )


def own_folder() -> Path:
    """The folder of the charts in this package: part of the wheel, or at the root of a checkout."""
    inside = _PACKAGE / "charts"
    return inside if inside.is_dir() else _PACKAGE.parents[1] / "charts"


def _own(chart: Chart) -> Path:
    path = own_folder() / chart.name
    if not (path / "Chart.yaml").is_file():
        raise EnvironmentFailure(f"chart {chart.name} is not part of this installation: specify a folder with --charts")
    return path


def _in_folder(chart: Chart, folder: Path) -> Path:
    if not folder.is_dir():
        raise InvalidSpec("is not a folder: name one with the charts (--charts, or platform.charts)", where=str(folder))
    packed = [chart.file, f"{chart.name}-v{chart.version.removeprefix('v')}.tgz"]
    for candidate in (folder / chart.name, *(folder / name for name in packed)):
        if candidate.is_file() or (candidate / "Chart.yaml").is_file():
            return candidate.absolute()
    if chart.source == OWN:
        return _own(chart)
    raise InvalidSpec(f"has no chart {chart.name}: put {chart.name}/ or {packed[0]} there", where=str(folder))


def kept_at(chart: Chart, cache: Path) -> Path:
    """The path of a downloaded chart in the cache."""
    return cache / f"{chart.name}-{hashlib.sha256(chart.source.encode()).hexdigest()[:8]}-{chart.version}.tgz"


def _pulled(chart: Chart, cache: Path) -> Path:
    kept = kept_at(chart, cache)
    if kept.is_file():
        return kept.absolute()
    cache.mkdir(parents=True, exist_ok=True)
    public = [chart.name, "--repo", chart.source]
    where = [f"{chart.source}/{chart.name}"] if chart.source.startswith("oci://") else public
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        try:
            OFFLINE.helm("pull", *where, "--version", chart.version, "--destination", scratch)
        except CommandFailure as error:
            raise EnvironmentFailure(
                f"chart {chart.name} {chart.version} of {chart.source} cannot be downloaded ({error.printed}): "
                "specify a folder with the charts (--charts, or spec.platform.charts)"
            ) from None
        (packed,) = Path(scratch).glob("*.tgz")
        _published(chart, digest_of(packed), chart.source)
        packed.replace(kept)
    return kept.absolute()


def _version(path: Path) -> str:
    if path.is_dir():
        text = (path / "Chart.yaml").read_text(encoding="utf-8")
    else:
        try:
            with tarfile.open(path) as packed:
                member = next(
                    name for name in packed.getnames() if name.count("/") == 1 and name.endswith("/Chart.yaml")
                )
                extracted = packed.extractfile(member)
                text = extracted.read().decode() if extracted else ""
        except (tarfile.TarError, StopIteration, OSError) as error:
            raise InvalidSpec(f"is not a packed chart ({error})", where=str(path)) from None
    return str((YAML(typ="safe").load(text) or {}).get("version", ""))


def digest_of(path: Path) -> str:
    """SHA-256 of a packed chart, or of the names and contents of a folder's files."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    total = hashlib.sha256()
    for file in sorted(entry for entry in path.rglob("*") if entry.is_file()):
        total.update(f"{file.relative_to(path)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()
