"""Storage servers for tests: installed at first use, on a free port, stopped afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.absent import absent

AZURITE = "3.35.0"


def azurite() -> str:
    """The path of azurite's blob server, of a pinned version, in the user's cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spotladder" / f"azurite-{AZURITE}"
    server = cache / "node_modules" / ".bin" / "azurite-blob"
    if server.exists():
        return str(server)
    if not shutil.which("npm"):
        absent("azurite needs npm (Node.js), which is not on PATH", "stores")
    cache.mkdir(parents=True, exist_ok=True)
    install = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(cache), f"azurite@{AZURITE}"]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=280)
    if done.returncode or not server.exists():
        shutil.rmtree(cache, ignore_errors=True)
        absent(f"npm cannot install azurite {AZURITE}: {done.stderr.strip()[-300:]}", "stores")
    return str(server)


@contextmanager
def running(command: Sequence[str], url: str, log: Path, env: dict[str, str] | None = None) -> Iterator[None]:
    """Run the server inside the block. It is ready when `url` responds with any status."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
    try:
        deadline = time.monotonic() + 60
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{command[0]} does not answer at {url}:\n{log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=1):
            return True
    except HTTPError:
        return True
    except OSError:
        return False
