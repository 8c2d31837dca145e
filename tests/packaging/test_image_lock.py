"""The packages of the image: the pinned versions, each with the digests of its files, and in the SBOM."""

from __future__ import annotations

import re
import tomllib

from tests.packaging.sbom import ROOT, locked, sbom


def test_the_image_has_the_pinned_versions_with_digests() -> None:
    pinned = {line.split(" ;")[0] for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()}
    assert {f"{name}=={version}" for name, (version, _) in locked().items()} <= pinned, "make constraints"
    assert [name for name, (_, digests) in locked().items() if not digests] == []
    assert {"pydantic", "aiohttp", "obstore"} <= locked().keys()


def test_the_image_installs_no_package_without_its_digest() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert text.index("--require-hashes --requirement image.lock") < text.index('".[${EXTRAS}]"')


def test_the_sbom_has_every_package_of_the_image_and_the_dependencies_of_the_wheel() -> None:
    components = {one["purl"]: one["name"] for one in sbom()["components"]}
    assert components.keys() == {f"pkg:pypi/{n}@{v}" for n, (v, _) in locked().items()}
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert {re.split(r"[^a-z0-9.-]", each)[0].replace(".", "-") for each in needed} <= set(components.values())
