"""Unpacks the archive of a job in its pod: `python -m spotladder.train.source FOLDER URI [REQUIREMENTS]`.

The files are then in FOLDER/source. The packages of the requirements file that this Python does not have are installed
in its virtual environment.
"""

from __future__ import annotations

import hashlib
import logging
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import ObjectMissing
from spotladder.errors import InvalidSpec
from spotladder.train.ending import exit_with_what_happened
from spotladder.train.store_retry import StoreRetry

_log = logging.getLogger("spotladder.train")


def unpack(folder: Path, uri: str) -> None:
    """Download the archive, whose name is its SHA-256, and unpack it into the folder. Raises InvalidSpec for a missing
    archive or one with another hash, and StoreRefused. Waits while the store is unavailable."""
    around, _, name = uri.rpartition("/")
    store = open_store(around)
    with tempfile.TemporaryDirectory() as temporary:
        archive = Path(temporary, "source.zip")
        try:
            StoreRetry(store).until_answered(lambda: store.get_file(name, archive), starting=True)
        except ObjectMissing:
            raise InvalidSpec(f"{uri} does not exist: run spotladder submit again", where="spec.source.uri") from None
        with archive.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if name != f"{found}.zip":
            raise InvalidSpec(f"{uri} has the SHA-256 {found}, not that of its name", where="spec.source.uri")
        with zipfile.ZipFile(archive) as files:
            for entry in files.infolist():
                path = Path(files.extract(entry, folder))
                if not entry.is_dir() and entry.external_attr >> 16 & 0o100:
                    path.chmod(0o755)


def main(arguments: Sequence[str] | None = None) -> int:
    """Unpack the archive and install its requirements. Returns the exit code."""
    folder, uri, *pip = sys.argv[1:] if arguments is None else arguments
    logging.basicConfig(format="spotladder: %(message)s")
    logging.getLogger("spotladder").setLevel(logging.INFO)
    exit_with_what_happened()
    source = Path(folder, "source")
    unpack(source, uri)
    _log.info("unpacked %s", uri)
    if not pip:
        return 0
    if not (source / pip[0]).is_file():
        raise InvalidSpec(f"{pip[0]} is not in the archive {uri}", where="spec.source.pip")
    command = [sys.executable, "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "-r", pip[0]]
    return subprocess.run(command, cwd=source, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
