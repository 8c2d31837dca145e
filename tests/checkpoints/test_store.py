"""The stores without a cloud: memory, disk, S3 (moto's server), Google Cloud Storage (a fake)."""

from __future__ import annotations

import errno
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from obstore.exceptions import GenericError, PermissionDeniedError, UnauthenticatedError

from spotladder.checkpoints import disk
from spotladder.checkpoints.bucket import RANGE, BucketStore
from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import (
    ObjectMissing,
    RightsRefused,
    Store,
    StoreRefused,
    folder_of,
)
from spotladder.checkpoints.store_check import check_store
from spotladder.errors import InvalidSpec, StoreUnavailable
from tests.checkpoints.contract import StoreContract
from tests.checkpoints.gcs import google
from tests.checkpoints.memory_store import MemoryStore
from tests.checkpoints.servers import moto, new_bucket, use_s3


class TestMemory(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


def test_no_thread_writes_to_a_file_whose_download_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Future[int]] = []

    class FewThreads(ThreadPoolExecutor):
        def submit(self, *work: Any, **more: Any) -> Any:
            if begun:
                raise RuntimeError("can't start new thread")
            begun.append(super().submit(*work, **more))
            return begun[0]

    with google(monkeypatch, latency=0.2):
        store = open_store("gs://bucket/log")
        assert isinstance(store, BucketStore)
        (tmp_path / "in").write_bytes(bytes(3 * RANGE))
        store.put_file("file", tmp_path / "in")
        store._pool = FewThreads(1)
        with pytest.raises(RuntimeError, match="new thread"):
            store.get_file("file", tmp_path / "out")
        assert begun[0].done()


class TestFolderOfAStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return folder_of(MemoryStore(), "jobs/all")


class TestDisk(StoreContract):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return str(tmp_path / "not" / "made yet")

    def test_leaves_no_hidden_files(self, store: Store, tmp_path: Path) -> None:
        store.put_if_absent("log/0", b"1")
        store.put_if_absent("log/0", b"2")
        (tmp_path / "w").write_bytes(b"w")
        store.put_file("log/w", tmp_path / "w")
        assert {path.name for path in (tmp_path / "not" / "made yet" / "log").iterdir()} == {"0", "w"}

    def test_a_temporary_file_is_kept_without_a_copy(self, tmp_path: Path) -> None:
        store, file = disk.DiskStore(tmp_path / "store"), tmp_path / "file"
        file.write_bytes(b"weights")
        taken = store.take_file("a/w", file)
        assert taken == store.get_file("a/w", None) == FileEntry("w", 7, "1ad27358")
        assert (tmp_path / "store/a/w").samefile(file)

    @pytest.mark.parametrize("how", [os.link, os.symlink], ids=["hard link", "symbolic link"])
    def test_a_file_that_has_another_name_is_copied(self, tmp_path: Path, how: Callable[[Path, Path], None]) -> None:
        """The program may write to it under the other name."""
        store, other, file = disk.DiskStore(tmp_path / "store"), tmp_path / "other", tmp_path / "file"
        other.write_bytes(b"weights")
        how(other, file)
        store.take_file("w", file)
        other.write_bytes(b"changed")
        assert store.get("w") == b"weights"

    def test_slices_of_a_large_file_have_its_checksum(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(disk, "SLICE", 2 * disk.CHUNK)
        content = os.urandom(5 * disk.CHUNK + 7)
        (tmp_path / "file").write_bytes(content)
        store = disk.DiskStore(tmp_path / "store")
        store.put_file("w", tmp_path / "file")
        assert store.get_file("w", None) == FileEntry("w", len(content), f"{zlib.crc32(content):08x}")

    def test_short_reads_do_not_cross_a_slice(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A network file system may return fewer bytes than requested."""
        monkeypatch.setattr(disk, "SLICE", 2 * disk.CHUNK)
        content, preadv = os.urandom(5 * disk.CHUNK + 7), os.preadv
        monkeypatch.setattr(os, "preadv", lambda file, buffers, at: preadv(file, [buffers[0][: disk.CHUNK - 5]], at))
        (tmp_path / "w").write_bytes(content)
        assert disk.DiskStore(tmp_path).get_file("w", None) == FileEntry(
            "w", len(content), f"{zlib.crc32(content):08x}"
        )

    def test_removes_empty_folders(self, store: Store, tmp_path: Path) -> None:
        store.put_if_absent("a/b/c", b"1")
        store.delete(["a/b/c"])
        assert not list((tmp_path / "not" / "made yet").iterdir())

    def test_a_file_address_names_the_folder(self, tmp_path: Path) -> None:
        open_store(tmp_path).put_if_absent("k", b"1")
        assert open_store(f"file://{tmp_path}").get("k") == b"1"

    @pytest.mark.parametrize(
        ("code", "says"),
        [
            (errno.ENOSPC, "the disk is full: free space"),
            (errno.EDQUOT, "the disk is full: free space"),
            (errno.EROFS, "the file system is read-only"),
            (errno.EACCES, "permission denied"),
        ],
    )
    def test_errors_of_the_disk_have_a_cause(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, says: str
    ) -> None:
        def refuse(_: int) -> None:
            raise OSError(code, os.strerror(code))

        (tmp_path / "w").write_bytes(b"w")
        monkeypatch.setattr(disk, "_flush", refuse)
        with pytest.raises(StoreRefused, match=says):
            store.put_if_absent("log/0", b"1")
        with pytest.raises(StoreRefused, match=says):
            store.put_file("w", tmp_path / "w")
        monkeypatch.undo()
        assert not list(store.list(""))

    def test_a_stale_mount_is_unavailable_and_not_refused(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        def stale(_: int) -> None:
            raise OSError(errno.ESTALE, "Stale file handle")

        monkeypatch.setattr(disk, "_flush", stale)
        with pytest.raises(StoreUnavailable, match="Stale file handle") as caught:
            store.put_if_absent("log/0", b"1")
        assert not isinstance(caught.value, StoreRefused)

    def test_a_file_system_without_hard_links_is_rejected(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_links(*_: object) -> None:
            raise OSError(errno.ENOTSUP, "Operation not supported")

        monkeypatch.setattr(os, "link", no_links)
        with pytest.raises(StoreRefused, match="no hard links"):
            store.put_if_absent("log/0", b"1")

    def test_a_file_in_place_of_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with pytest.raises(StoreRefused, match="a file has the name of a required folder"):
            check_store(open_store(tmp_path / "file"))

    def test_a_folder_in_place_of_a_file_is_not_an_object(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "in").write_bytes(b"w")
        store.put_file("a/w", tmp_path / "in")
        root = Path(unquote(store.uri.removeprefix("file://")))
        (root / "a/w").unlink()
        (root / "a/w").mkdir()
        (root / "b").write_bytes(b"x")
        for key in ("a/w", "b/w"):
            with pytest.raises(ObjectMissing):
                store.get_file(key, None)
            with pytest.raises(ObjectMissing):
                store.get(key)
            assert store.head(key) is None

    def test_a_read_only_folder(self, tmp_path: Path) -> None:
        if os.geteuid() == 0:
            pytest.skip("root can write to every folder")
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(StoreRefused, match="permission denied"):
                check_store(open_store(tmp_path / "x"))
        finally:
            tmp_path.chmod(0o700)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as environment, moto(environment) as endpoint:
        yield endpoint


class TestS3(StoreContract):
    @pytest.fixture
    def address(self, s3: str) -> str:
        return new_bucket(s3)

    def test_the_error_names_a_missing_bucket(self, s3: str) -> None:
        with pytest.raises(StoreRefused, match="bucket nowhere does not exist: create it or correct the address"):
            check_store(open_store("s3://nowhere/prefix"))
        with pytest.raises(StoreRefused, match="bucket nowhere does not exist"):
            open_store("s3://nowhere/prefix").put_if_absent("k", b"1")

    def test_the_error_names_an_unreachable_server_without_secrets(
        self, monkeypatch: pytest.MonkeyPatch, s3: str
    ) -> None:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:hidden@127.0.0.1:1/?secret=hidden")
        wanted = (
            r"cannot create s3://bkt/x/probes/.*: .* check the network and AWS_ENDPOINT_URL \(http://127\.0\.0\.1:1/\)$"
        )
        with pytest.raises(StoreUnavailable, match=wanted) as caught:
            check_store(open_store("s3://bkt/x"))
        assert "hidden" not in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "value", "says"),
        [
            ("AWS_ACCESS_KEY_ID", "AKIA\n", "AWS_ACCESS_KEY_ID contains a line break"),
            ("AWS_SECRET_ACCESS_KEY", "x\r\n", "AWS_SECRET_ACCESS_KEY contains a line break"),
            ("AWS_REGION", "us-east-1\n", "AWS_REGION contains a line break"),
            ("AWS_ENDPOINT_URL", "minio:9000", "AWS_ENDPOINT_URL is not an address: set it to http://"),
            ("AWS_ENDPOINT_URL", "", "AWS_ENDPOINT_URL is not an address: set it to http://"),
        ],
    )
    def test_the_error_names_an_invalid_setting(self, s3: str, name: str, value: str, says: str) -> None:
        with pytest.raises(StoreRefused, match=says):
            open_store("s3://bkt/x", {name: value})

    def test_a_panic_of_the_library_is_an_error(self, s3: str) -> None:
        with pytest.raises(StoreRefused, match=r"cannot create s3://b b/x/probes/.*: the settings do not make a valid"):
            check_store(open_store("s3://b b/x"))

    def test_get_many_leaves_no_threads(self, store: Store) -> None:
        for number in range(20):
            store.put_if_absent(f"log/{number:02}", b"x")
        assert store.get_many([f"log/{number:02}" for number in range(21)]) == [b"x"] * 20 + [None]
        assert [thread for thread in threading.enumerate() if thread.name.startswith("spotladder-store")] == []

    def test_a_profile_is_used_without_keys(
        self, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        credentials = tmp_path / "credentials"
        credentials.write_text("[work]\naws_access_key_id = test\naws_secret_access_key = test\n")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
        monkeypatch.setenv("AWS_PROFILE", "work")
        check_store(open_store(address))
        monkeypatch.setenv("AWS_PROFILE", "home")
        with pytest.raises(StoreRefused, match=r"AWS_PROFILE=home: .*could not be found.*: correct it, or set AWS_"):
            open_store(address)


FULL = (
    "<Error><Code>XMinioStorageFull</Code><Key>k</Key><Message>Storage backend has reached its minimum free drive "
    "threshold.</Message></Error>"
)


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (
            PermissionDeniedError("403 AccessDenied"),
            RightsRefused,
            "access denied: check the bucket's policy and AWS_ACC",
        ),
        (UnauthenticatedError("401"), RightsRefused, "access denied"),
        (GenericError("... <Code>SignatureDoesNotMatch</Code>"), RightsRefused, "access denied"),
        (GenericError("403: <Code>RequestTimeTooSkewed</Code>"), StoreRefused, "this machine's clock is wrong: set it"),
        (GenericError("PUT http://169.254.169.254/latest/api/token"), RightsRefused, "no credentials found: set AWS_"),
        (GenericError("Generic S3 error: Missing SecretAccessKey"), RightsRefused, "no credentials found: set AWS_"),
        (GenericError("status code: 404: <Code>NoSuchBucket</Code>"), StoreRefused, "bucket bkt does not exist"),
        (FileNotFoundError("Object at location k not found"), StoreRefused, "bucket bkt does not exist"),
        (OSError(errno.ENOSPC, "No space left on device"), StoreRefused, "No space left on device on this machine"),
        (
            GenericError("after 5 retries - Server returned non-2xx status code: 503 Slow Down: <x> Debug source: Y"),
            StoreUnavailable,
            "cannot write s3://bkt/p/k: the server answers 503 Slow Down: check the network and AWS_ENDPOINT_URL",
        ),
        (
            GenericError("PUT http://h/bkt/exp-403/k failed - Server returned non-2xx status code: 503 Slow Down"),
            StoreUnavailable,
            "the server answers 503 Slow Down",
        ),
        (
            GenericError(f"Server returned non-2xx status code: 507 Insufficient Storage: {FULL}"),
            StoreUnavailable,
            "the server answers 507 Insufficient Storage: XMinioStorageFull: Storage backend has reached its minimum",
        ),
        (GenericError(f"status code: 403 Forbidden: {FULL}"), RightsRefused, "access denied (XMinioStorageFull: Stor"),
        (
            GenericError("400 Bad Request: <Code>AuthorizationHeaderMalformed</Code><Message>the region 'a' is wrong"),
            StoreRefused,
            "the bucket is in another region: set AWS_REGION",
        ),
        (
            GenericError(
                "Received redirect without LOCATION, this normally indicates an incorrectly configured region"
            ),
            StoreRefused,
            "the bucket is in another region: set AWS_REGION",
        ),
        (GenericError("GET http://h/k?X-Amz-Signature=secret failed"), StoreUnavailable, "GET http://h/k failed"),
    ],
)
def test_errors_of_a_bucket_recommend_a_remedy(error: Exception, kind: type[Exception], says: str) -> None:
    with pytest.MonkeyPatch.context() as environment:
        use_s3(environment, "http://127.0.0.1:1", "key", "secret")
        found = BucketStore("s3", "bkt", "p")._failure("write", "k", error)
    assert type(found) is kind
    assert says in str(found)
    assert "secret" not in str(found)
    assert "\n" not in str(found)


@pytest.mark.parametrize(
    ("variables", "given", "renewable"),
    [
        ({}, {}, True),
        ({"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}, {}, False),
        ({}, {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}, False),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}, {}, True),
    ],
)
def test_static_credentials_are_not_renewed_and_others_are(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], given: dict[str, str], renewable: bool
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    store = BucketStore("s3", "bkt", "p", given)
    before = store._store
    assert folder_of(store, "job").renew() is renewable
    assert (store._store is not before) is renewable


@pytest.fixture(scope="module")
def gcs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment, google(environment):
        yield


class TestGoogle(StoreContract):
    @pytest.fixture
    def address(self, gcs: None, request: pytest.FixtureRequest) -> str:
        return f"gs://bucket/{request.node.name}"

    def test_the_error_names_a_missing_bucket(self, gcs: None) -> None:
        with pytest.raises(StoreRefused, match="bucket nowhere does not exist"):
            check_store(open_store("gs://nowhere/prefix"))


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("", "the checkpoint address is empty"),
        ("ftp://host/x", "ftp://… is not a checkpoint address: use s3://"),
        ("s3://", "needs a bucket"),
        ("s3://key:secret@bucket/x", "no credentials"),
        ("file://host/x", "three slashes"),
        ("file:///data/run#1", "write %23 for #"),
        ("file:///data/run?", "write %23 for #"),
        ("~no-such-user/x", "~no-such-user/x: has no home folder"),
    ],
)
def test_invalid_addresses_are_rejected(address: str, says: str) -> None:
    with pytest.raises(InvalidSpec, match=says) as caught:
        open_store(address)
    assert "secret@" not in str(caught.value)
