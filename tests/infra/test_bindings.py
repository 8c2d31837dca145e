"""The bindings are loaded module by module, although the index of Google's bindings requires all modules."""

from __future__ import annotations

import subprocess
import tarfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from spotladder_infra.stacks import node as nodejs
from spotladder_infra.stacks import synth
from tests.absent import absent
from tests.infra.conftest import SUITE


def test_the_index_loads_without_its_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a new version of the bindings writes its index differently: then synthesis is slow again."""
    package = find_spec("cdktn_provider_google")
    if package is None or package.origin is None:
        absent("cdktn_provider_google is not installed (make setup-infra)", SUITE)
    monkeypatch.delenv("JSII_NODE", raising=False)
    node = nodejs.path()
    archive = next((Path(package.origin).parent / "_jsii").glob("*.jsii.tgz"))
    index = tmp_path / "node_modules" / "@cdktn" / "provider-google" / "lib" / "index.js"
    index.parent.mkdir(parents=True)
    with tarfile.open(archive) as packed, packed.extractfile("package/lib/index.js") as text:  # type: ignore[union-attr]
        index.write_bytes(text.read())
    program = f"console.log(Object.keys(require({str(index)!r})).length)"
    command = [node, "--require", str(synth.LAZY_BINDINGS), "-e", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:]
    assert int(done.stdout) > 1000
