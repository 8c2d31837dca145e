"""Prints the packages of the controller's image, which has the dependencies of the wheel, as a CycloneDX document, from
`image.lock` (`make sbom`)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

_PACKAGE = re.compile(r"([a-z0-9._-]+)==([^ ;]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def locked() -> dict[str, tuple[str, list[str]]]:
    """The version and the SHA-256 digests of each package."""
    lines = (ROOT / "image.lock").read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    return {found[1]: (found[2], _HASH.findall(line)) for line in lines if (found := _PACKAGE.match(line))}


def sbom() -> dict[str, Any]:
    """The document. A package may have several files, so their digests are properties."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "spotladder"}},
        "components": [
            {
                "type": "library",
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name}@{version}",
                "properties": [{"name": "sha256", "value": digest} for digest in digests],
            }
            for name, (version, digests) in sorted(locked().items())
        ],
    }


if __name__ == "__main__":
    print(json.dumps(sbom(), indent=1))
