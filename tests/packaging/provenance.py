"""Prints where the files of a release come from, as a statement of in-toto with SLSA's provenance
(`python -m tests.packaging.provenance dist`): their digests, and the commit that they were built from."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.packaging.build import ROOT

BUILD = "urn:spotladder:make-release"


def provenance(folder: Path, commit: str) -> dict[str, Any]:
    """The statement about all files of the folder."""
    files = sorted(folder.iterdir())
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": file.name, "digest": {"sha256": _sha256(file)}} for file in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": {},
                "resolvedDependencies": [{"name": "spotladder", "digest": {"gitCommit": commit}}],
            },
            "runDetails": {"builder": {"id": BUILD}},
        },
    }


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    print(json.dumps(provenance(Path(sys.argv[1]), head.stdout.strip()), indent=1))
