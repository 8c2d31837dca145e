"""The signature and the provenance of a release."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packaging.build import ROOT
from tests.packaging.provenance import provenance


def run(*command: object, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, check=False)


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="not found: ssh-keygen")
def test_a_user_verifies_a_release_and_notices_a_change(tmp_path: Path) -> None:
    """With the command of SECURITY.md."""
    dist, key = tmp_path / "dist", tmp_path / "key"
    dist.mkdir()
    (dist / "wheel").write_text("of the release")
    digest = hashlib.sha256(b"of the release").hexdigest()
    (dist / "SHA256SUMS").write_text(f"{digest}  wheel\n")
    assert run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key, folder=tmp_path).returncode == 0
    signed = run(ROOT / ".ci" / "sign", "dist", "key", folder=tmp_path)
    assert signed.returncode == 0, signed.stderr
    assert sorted(file.name for file in dist.iterdir()) == ["SHA256SUMS", "SHA256SUMS.sig", "wheel"]
    (dist / "release.signers").write_text(f"release {key.with_suffix('.pub').read_text()}")
    (verify,) = (line for line in (ROOT / "SECURITY.md").read_text().splitlines() if "ssh-keygen" in line)
    assert run("sh", "-c", verify, folder=dist).returncode == 0
    (dist / "wheel").write_text("of another")
    assert run("sh", "-c", verify, folder=dist).returncode != 0
    (dist / "SHA256SUMS").write_text("")
    assert run("sh", "-c", verify, folder=dist).returncode != 0


def test_the_provenance_names_every_file_and_the_commit(tmp_path: Path) -> None:
    (tmp_path / "wheel").write_text("of the release")
    found = provenance(tmp_path, "abc")
    assert found["subject"] == [{"name": "wheel", "digest": {"sha256": hashlib.sha256(b"of the release").hexdigest()}}]
    assert found["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"] == {"gitCommit": "abc"}
