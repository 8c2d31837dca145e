"""The image has the same files after each build of the same commit. BuildKit gives them the same times and order."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.packaging.build import ROOT, copy

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")


def installed(folder: Path) -> dict[str, str]:
    """The digests of the files after the Dockerfile's installation of this checkout, without its dependencies."""
    tree, target = folder / "build", folder / "opt"
    copy(tree)
    (settings,) = re.findall(r"^ENV (UV_.*)$", DOCKERFILE, re.MULTILINE)
    (command,) = re.findall(r'^RUN (uv pip install .*"\.\[\$\{EXTRAS\}\]".*)$', DOCKERFILE, re.MULTILINE)
    command = command.replace("/opt/spotladder", str(target)).replace('".[${EXTRAS}]"', "--no-deps --offline .")
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(target)], check=True)
    (packages,) = target.glob("lib/*/site-packages")
    (packages / "builder.pth").write_text(sysconfig.get_path("purelib"))
    environment = os.environ | dict(each.split("=") for each in settings.split())
    environment |= {"UV_NO_BUILD_ISOLATION": "1", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-euc", command], cwd=tree, env=environment, check=True, capture_output=True)
    files = sorted(file for file in target.rglob("*") if file.is_file())
    digests = {str(file.relative_to(target)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    shutil.rmtree(tree)
    shutil.rmtree(target)
    return digests


def test_the_same_commit_gives_the_same_files(tmp_path: Path) -> None:
    first, second = installed(tmp_path), installed(tmp_path)
    assert {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)} == set()
    assert sum(name.endswith(".pyc") for name in first) > 500
