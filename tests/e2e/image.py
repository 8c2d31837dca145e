"""The image of this checkout: the controller, the in-job library with TensorFlow, Ray and the examples, and a later
version of the package.

python -m tests.e2e.image   # build it if it does not exist yet
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.provider import call, remove_image, tool
from tests.kube.apiserver import tools
from tests.released import later

ROOT = Path(__file__).parents[2]
LATER = "/opt/later"
"""The folder in the image with the later version. A pod with this PYTHONPATH uses it."""


def build() -> str:
    """The image's tag. Builds the image if none of this code exists yet, and removes old ones that no cluster uses:
    another checkout may be about to use the newest."""
    files = [path for path in _tracked("controller", "examples", "pyproject.toml", "constraints.txt") if path.is_file()]
    digest = hashlib.sha256()
    for path in [*files, Path(__file__), Path(later.__file__)]:
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    tag = f"spotladder-e2e:{digest.hexdigest()[:12]}"
    with _one_build_at_a_time():
        if not tar_of(tag).exists():
            _build(tag, files)
    return tag


def _build(tag: str, files: list[Path]) -> None:
    built = tar_of(tag).parent.glob("localhost_spotladder-e2e_*.tar")
    for old in sorted(built, key=lambda path: path.stat().st_mtime)[:-1]:
        remove_image(old)
    with tempfile.TemporaryDirectory() as folder:
        for path in [*files, ROOT / "README.md", ROOT / "LICENSE", *_tracked("infra", "charts")]:
            target = Path(folder, "spotladder", path.relative_to(ROOT))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        project = Path(folder, "spotladder")
        python = [f"{project}[operator,tensorflow]", f"ray[default,train,tune]=={pinned('ray')}", "scikit-learn"]
        copies = [f"--copy={project}/examples:/opt/examples", f"--copy={later.make(Path(folder, 'later'))}:{LATER}"]
        call([str(tool()), "image", "build", tag, *copies, "--python", *python])


@contextmanager
def _one_build_at_a_time() -> Iterator[None]:
    """Hold a file lock: several test processes may need the image at the same moment."""
    tar_of("lock").parent.mkdir(parents=True, exist_ok=True)
    with (tar_of("lock").parent / "spotladder-e2e.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def tar_of(tag: str) -> Path:
    """The place where the provider stores an image."""
    return tools() / "images" / f"localhost_{tag.replace(':', '_')}.tar"


def reference(tag: str) -> str:
    """The image's name in a pod spec."""
    return f"localhost/{tag}"


def _tracked(*paths: str) -> list[Path]:
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *paths]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(ROOT / line for line in listed.splitlines())


def pinned(package: str) -> str:
    """The version of a package in the image."""
    found = re.search(rf"^{package}(?:\[[^]]*\])?==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert found
    return found.group(1)


if __name__ == "__main__":
    build()
