"""`spotladder submit --working-dir`: a folder as an archive, and its upload beside the commits of a job."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotladder.api.source import key_of
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import folder_of
from spotladder.cli.cluster.ignored import Ignored
from spotladder.errors import Refused, SpotladderError

LARGEST = 100 << 20
"""Bytes of all files of an archive."""

LOCK = "uv.lock"
"""The lock file of uv. pip does not read it, so the archive also has its packages as a requirements file."""

_DATE = (1980, 1, 1, 0, 0, 0)
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Archive:
    """The files of a folder as a zip archive, the same bytes for the same files."""

    data: bytes
    sha256: str
    files: int

    @classmethod
    def of(cls, folder: Path, pip: Path | None) -> tuple[Archive, str | None]:
        """The archive of a folder, and the path of the requirements file in it. Raises Refused."""
        if not folder.is_dir():
            raise Refused(f"--working-dir {folder} is not a folder")
        files = list(_files(folder))
        if not files:
            raise Refused(f"--working-dir {folder} has no files that .gitignore and .rayignore do not exclude")
        for file in files:
            _check_name(file.relative_to(folder).as_posix(), folder)
        sizes = {file: file.stat().st_size for file in files}
        if sum(sizes.values()) > LARGEST:
            largest = sorted(sizes, key=lambda file: -sizes[file])[:3]
            named = ", ".join(f"{file.relative_to(folder)} ({sizes[file] / _MIB:.0f} MiB)" for file in largest)
            raise Refused(
                f"--working-dir {folder} has {sum(sizes.values()) / _MIB:.0f} MiB, at most {LARGEST // _MIB} MiB are "
                f"allowed: exclude data in .rayignore; the largest files are {named}"
            )
        requirements = None if pip is None else _place(pip, folder, files)
        exported = _exported(pip) if pip is not None and pip.name == LOCK else None
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _DATE)
                entry.external_attr = (0o755 if file.stat().st_mode & 0o100 else 0o644) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, file.read_bytes())
            if exported is not None:
                requirements = f"{requirements}.txt"
                archive.writestr(zipfile.ZipInfo(requirements, _DATE), exported)
        data = buffer.getvalue()
        return cls(data, hashlib.sha256(data).hexdigest(), len(files)), requirements

    def upload(self, uri: str, job: str) -> str:
        """Upload the archive beside the commits of the job, unless it is there. Returns its address. Raises Refused if
        this machine cannot write there."""
        scheme, _, place = uri.partition("://")
        if scheme == "file" and not Path(place).is_dir():
            raise Refused(f"--working-dir: {uri} (spec.checkpoints.uri) is not mounted on this machine: mount it here")
        try:
            store, key = folder_of(open_store(uri), job), key_of(self.sha256)
            if store.head(key) is None:
                with tempfile.NamedTemporaryFile(suffix=".zip") as file:
                    file.write(self.data)
                    file.flush()
                    store.put_file(key, Path(file.name))
        except SpotladderError as error:
            raise Refused(
                f"--working-dir: this machine cannot write to {uri} (spec.checkpoints.uri), from which the pods read "
                f"the files: {error}. Set the credentials of the bucket here, or run the command where they are"
            ) from None
        return f"{store.uri}/{key}"


def with_source(archive: Archive, pip: str | None, body: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a job with the uploaded archive."""
    uri = archive.upload(body["spec"]["checkpoints"]["uri"], body["metadata"]["name"])
    source = {"uri": uri, **({"pip": pip} if pip else {})}
    return {**body, "spec": {**body["spec"], "source": source}}


def _files(folder: Path) -> Iterator[Path]:
    """The files below the folder in the order of their paths, without ignored ones, `.git`, caches of Python and
    virtual environments."""
    ignored = Ignored(folder)

    def below(here: Path) -> Iterator[Path]:
        ignored.read(here)
        for path in sorted(here.iterdir()):
            is_folder = path.is_dir() and not path.is_symlink()
            if ignored.matches(path, is_folder=is_folder):
                continue
            if is_folder:
                if path.name not in (".git", "__pycache__") and not (path / "pyvenv.cfg").exists():
                    yield from below(path)
            elif path.is_file():
                yield path

    yield from below(folder)


def _check_name(name: str, folder: Path) -> None:
    """Raises Refused for a name that an archive cannot have."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Refused(
            f"--working-dir {folder}: the name {name!r} is not UTF-8: rename the file, or exclude it in .rayignore"
        ) from None


def _place(pip: Path, folder: Path, files: list[Path]) -> str:
    for file in files:
        if file.resolve() == pip.resolve():
            return file.relative_to(folder).as_posix()
    raise Refused(f"--pip {pip} is not among the files of --working-dir {folder}: move it there")


def _exported(lock: Path) -> str:
    """The packages of a lock file of uv with their hashes, without the project itself and its group `dev`, as a
    requirements file. Raises Refused if the lock does not match its `pyproject.toml`, or uv is not installed."""
    uv = shutil.which("uv")
    if uv is None:
        raise Refused(f"--pip {lock} needs uv on this machine: install it, or pass a requirements file")
    command = [uv, "export", "--quiet", "--locked", "--no-dev", "--no-emit-project", "--no-header", "--no-annotate"]
    done = subprocess.run([*command, "--project", lock.parent], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().removeprefix("error: ") or "failed"
        raise Refused(f"--pip {lock}: uv export: {said.splitlines()[0]}")
    return done.stdout
