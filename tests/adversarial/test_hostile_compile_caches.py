"""An attacker who can write to a bucket can replace its archives of compile caches. Unpacking such an archive creates
files only in the folder of the caches, and stays within the limits."""

from __future__ import annotations

import io
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from spotladder.checkpoints import compiled
from spotladder.checkpoints.compiled import CompileCaches
from spotladder.checkpoints.disk import DiskStore
from spotladder.errors import LogCorrupt, TooLarge

KIND = "0123456789ab"
GOOD = tarfile.TarInfo("torch/good")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer."""
    monkeypatch.setattr(compiled, "PUT_BACK_TIMEOUT", 600.0)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def archive(path: Path, *members: tarfile.TarInfo) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as packed:
        for info in members:
            packed.addfile(info, io.BytesIO(bytes(info.size)))
    return path


@pytest.mark.parametrize(
    "bad",
    [
        member("../outside"),
        member("torch/../../outside"),
        member("/etc/outside"),
        member("torch//etc/outside"),
        member("torch/./a"),
        member("torch"),
        member("stored"),
        member("other/a"),
        member("torch/a\nb"),
        member("torch/a\\..\\b"),
        member("torch/a", tarfile.SYMTYPE, "/etc"),
        member("torch/a", tarfile.LNKTYPE, "/etc/passwd"),
        member("torch/a", tarfile.FIFOTYPE),
        member("torch/a", tarfile.CHRTYPE),
        member("torch/a", tarfile.DIRTYPE),
        member("torch/a", tarfile.GNUTYPE_SPARSE),
        member("torch/a", tarfile.CONTTYPE),
        member("torch/a", b"?"),
    ],
    ids=lambda info: f"{info.name!r} {info.type!r}",
)
def test_an_archive_with_anything_but_files_of_frameworks_writes_nothing(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    packed, folder = archive(tmp_path / "a.tar", GOOD, bad), tmp_path / "folder"
    with pytest.raises(LogCorrupt, match="only files of frameworks"):
        compiled.unpack(packed, folder)
    assert not folder.exists()
    assert not (tmp_path / "outside").exists()


def test_a_sparse_file_does_not_grow(tmp_path: Path) -> None:
    """Its few bytes in the archive would become a terabyte."""
    sparse = member("torch/sparse")
    sparse.pax_headers = {"GNU.sparse.size": str(1 << 40), "GNU.sparse.numblocks": "0", "GNU.sparse.map": "0,0"}
    with pytest.raises(LogCorrupt):
        compiled.unpack(archive(tmp_path / "a.tar", sparse), tmp_path / "folder")


def test_a_file_has_no_more_bytes_than_the_archive(tmp_path: Path) -> None:
    huge = member("torch/huge")
    huge.pax_headers = {"size": str(1 << 40)}
    packed = archive(tmp_path / "a.tar", huge)
    with pytest.raises((tarfile.TarError, OSError)):
        compiled.unpack(packed, tmp_path / "folder")
    assert not (tmp_path / "folder/torch/huge").exists()


def test_an_archive_with_too_many_files_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MAX_FILES", 10)
    packed = archive(tmp_path / "a.tar", *(member(f"torch/{number}") for number in range(11)))
    with pytest.raises(TooLarge):
        compiled.unpack(packed, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def header(kind: bytes, size: int) -> bytes:
    info = member("torch/a", kind)
    info.size = size
    return info.tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(
    "kind",
    [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK],
)
def test_a_large_extension_of_a_header_is_not_read(tmp_path: Path, kind: bytes) -> None:
    """It would be parsed in memory, where it takes twenty times its bytes."""
    size = 1 << 20
    packed = tmp_path / "a.tar"
    packed.write_bytes(header(kind, size) + b"7 %03x=\n" * (size // 8) + header(tarfile.REGTYPE, 0) + bytes(1024))
    tracemalloc.start()
    try:
        with pytest.raises(LogCorrupt, match="only files of frameworks"):
            compiled.unpack(packed, tmp_path / "folder")
        assert tracemalloc.get_traced_memory()[1] < size // 2
    finally:
        tracemalloc.stop()


def dated(seconds: str) -> tarfile.TarInfo:
    info = member("torch/dated")
    info.pax_headers = {"mtime": seconds}
    return info


def endless() -> bytes:
    """Extensions of extensions, which the library reads recursively."""
    return (header(tarfile.XHDTYPE, 10) + b"9 path=a\n\0".ljust(512, b"\0")) * 3000 + header(tarfile.REGTYPE, 0)


@pytest.mark.parametrize("content", ["inf", "nan", "1e300", "-1e300", "extensions"])
def test_no_archive_ends_the_thread_with_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    key = archive(
        tmp_path / f"store/compiled/00000001-0001-{KIND}.tar", dated("1" if content == "extensions" else content)
    )
    if content == "extensions":
        key.write_bytes(endless())
    caches = CompileCaches(tmp_path / "folder", DiskStore(tmp_path / "store"), KIND)
    caches.put_back()
    caches.wait()
    assert "compile caches" in caplog.text
    assert not (tmp_path / "folder/torch/dated").exists()


@pytest.mark.parametrize("content", [b"", b"no archive", bytes(10_240), b"\xff" * 4096])
def test_a_damaged_archive_is_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    key = tmp_path / f"store/compiled/00000001-0001-{KIND}.tar"
    archive(key, GOOD)
    key.write_bytes(content)
    caches = CompileCaches(tmp_path / "folder", DiskStore(tmp_path / "store"), KIND)
    caches.put_back()
    caches.wait()
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["stored"]
    assert "compile caches" in caplog.text or content == bytes(10_240)


def test_an_archive_above_the_limit_is_not_read(tmp_path: Path) -> None:
    """Nor are other objects in the folder."""
    store = tmp_path / "store"
    archive(store / f"compiled/00000001-0001-{KIND}.tar", GOOD)
    for name in (f"compiled/00000002-0001-{KIND}.tar", f"compiled/x-{KIND}.tar"):
        with (store / name).open("wb") as file:
            file.truncate(compiled.MAX_BYTES + 1)
    caches = CompileCaches(tmp_path / "folder", DiskStore(store), KIND)
    caches.put_back()
    caches.wait()
    assert (tmp_path / "folder/torch/good").exists()
