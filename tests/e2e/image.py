"""The image of this checkout: the controller, the in-job library with TensorFlow, Ray and the examples."""

from __future__ import annotations

import hashlib
import importlib.util
import py_compile
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.e2e.provider import call, tool
from tests.kube.apiserver import tools

ROOT = Path(__file__).parents[2]
_BASE = "spotladder-base:1"


def build() -> str:
    """The image's tag; built when there is none of this very code yet, and the one before it is removed."""
    files = [path for path in _tracked("controller", "examples", "pyproject.toml", "constraints.txt") if path.is_file()]
    digest = hashlib.sha256()
    for path in [*files, Path(__file__)]:
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    tag = f"spotladder-e2e:{digest.hexdigest()[:12]}"
    if tar_of(tag).exists():
        return tag
    for old in tar_of(tag).parent.glob("localhost_spotladder-e2e_*.tar"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        for path in [*files, ROOT / "README.md", ROOT / "LICENSE", *_tracked("infra")]:
            target = Path(folder, "spotladder", path.relative_to(ROOT))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        project = Path(folder, "spotladder")
        python = [f"{project}[operator,tensorflow]", f"ray[default,train,tune]=={_pinned('ray')}", "scikit-learn"]
        copies = [f"{project}/examples:/opt/examples", *_bytecode(Path(folder, "bytecode"))]
        command = [str(tool()), "image", "build", tag, "--python", *python]
        for copy in copies:
            command += ["--copy", copy]
        # All files of a layer get one time of change, after which Python takes bytecode that names another for stale:
        # each of the twenty processes of a Ray node would compile what it imports, half a minute of two cores.
        call(command, env={"PYC_INVALIDATION_MODE": "UNCHECKED_HASH"})
    return tag


def _bytecode(folder: Path) -> list[str]:
    """The base image's standard library compiled anew, as folders to copy: its own is stale in a layer, too."""
    library = tools() / "images" / "base" / "usr" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if not library.parent.parent.exists():
        call([str(tool()), "image", "build", _BASE])  # the first image of all makes the base
        tar_of(_BASE).unlink()
    if not library.exists():  # of another Python: it compiles for itself, only slower
        return []
    sources = [path.relative_to(library) for path in library.rglob("*.py") if "test" not in path.parts]
    for source in sources:
        target = Path(importlib.util.cache_from_source(str(folder / source)))
        py_compile.compile(
            str(library / source),
            str(target),
            dfile=f"/usr/lib/{library.name}/{source}",
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    within = sorted({source.parent / "__pycache__" for source in sources})
    return [f"{folder / cache}:/usr/lib/{library.name}/{cache}" for cache in within]


def tar_of(tag: str) -> Path:
    """Where the provider keeps an image."""
    return tools() / "images" / f"localhost_{tag.replace(':', '_')}.tar"


def reference(tag: str) -> str:
    """The image's name in a pod."""
    return f"localhost/{tag}"


def _tracked(*paths: str) -> list[Path]:
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *paths]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(ROOT / line for line in listed.splitlines())


def _pinned(package: str) -> str:
    found = re.search(rf"^{package}(?:\[[^]]*\])?==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert found
    return found.group(1)
