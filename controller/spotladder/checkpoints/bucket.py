"""A store in a bucket: S3 and compatible stores, Google Cloud Storage or Azure Blob Storage, through obstore."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from zlib_ng.zlib_ng import crc32, crc32_combine

from spotladder.checkpoints import isolated as alone
from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.store import LARGEST_OBJECT, ObjectMeta, ObjectMissing, RightsRefused, Store, StoreRefused
from spotladder.errors import SpotladderError, StoreUnavailable, TooLarge

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore, S3Store

PART = 8 << 20
"""Bytes of one part of an upload. S3 requires at least 5 MiB for every part but the last."""

RANGE = 4 << 20
"""Bytes of one range of a download. The checksum of larger buffers would not hit the processor's cache."""

AT_ONCE = 8
"""Parts of one file in flight, and half of the ranges of all files. The upload of a file uses at most PART × AT_ONCE
bytes of memory."""

MAX_PARTS = 9_000
"""Maximum number of parts of one upload; S3 accepts 10,000. A file of more than 70 GiB is uploaded in larger parts."""

CONNECT_TIMEOUT = timedelta(seconds=5)

SMALL_REQUEST_TIMEOUT = timedelta(seconds=10)
"""Timeout of requests of a few kilobytes: log entries, listings, deletions."""

DATA_REQUEST_TIMEOUT = timedelta(seconds=60)
"""Timeout of one part of an upload or one range of a download."""

NO_PROXY = "http://127.0.0.1:0"
"""The address of a proxy that no process can have: every connection to it is refused at once."""

RETRY_TIMEOUT = timedelta(seconds=15)
"""Time during which one call retries a failed request. The caller handles longer outages."""

_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or a role), AWS_REGION, AWS_ENDPOINT_URL",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT",
    "az": "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_CLIENT_ID",
}

_GIVEN = {
    "s3": frozenset(
        {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION",
         "AWS_ENDPOINT_URL"}
    ),
    "gs": frozenset({"GOOGLE_SERVICE_ACCOUNT_KEY"}),
    "az": frozenset(
        {"AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_ID",
         "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"}
    ),
}  # fmt: skip
"""Variables that may be passed to another machine: those that contain no path."""

_FIXED = {
    "s3": frozenset({"AWS_ACCESS_KEY_ID"}),
    "gs": frozenset({"GOOGLE_SERVICE_ACCOUNT_KEY"}),
    "az": frozenset({"AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_SECRET"}),
}
"""Variables that contain a credential: if one is set, the credentials of this process cannot change."""

_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist|InvalidBucketName", re.I)
_FORBIDDEN = re.compile(
    r"AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|AuthenticationFailed|AuthorizationFailure|ExpiredToken|InvalidToken"
    r"|Forbidden|Unauthorized",
    re.I,
)
_NO_CREDENTIALS = re.compile(
    r"169\.254\.169\.254|metadata\.google|Missing ?(Credentials|AccessKey|SecretAccessKey|Account)|InstanceCredential",
    re.I,
)
_OTHER_REGION = re.compile(r"redirect without LOCATION|PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocation")
_SAID = re.compile(r"<Code>([\w.-]+)</Code>(?:.{0,200}?<Message>([^<]{1,200}))?")
"""The code and the message of an error, as the server reports them."""

_NO_RANGE = re.compile(r"\b416\b|InvalidRange", re.I)
_QUERY = re.compile(r"\?[^\s\"'<>)]*")


class BucketStore(Store):
    """A store on one bucket and prefix."""

    def __init__(
        self,
        scheme: str,
        bucket: str,
        prefix: str,
        environment: Mapping[str, str] = MappingProxyType({}),
        *,
        isolated: bool = False,
        only_host: str = "",
    ) -> None:
        self._scheme = scheme
        self._bucket = bucket
        self._prefix = prefix
        self._environment = environment
        self.uri = f"{scheme}://{bucket}" + (f"/{prefix}" if prefix else "")
        self._isolated, self._only_host = isolated, only_host
        self._endpoint = _endpoint(scheme, environment)
        _check(scheme, environment)
        self._store = self._connected(SMALL_REQUEST_TIMEOUT)
        self._data_store: S3Store | GCSStore | AzureStore | None = None
        self._pool = ThreadPoolExecutor(2 * AT_ONCE, thread_name_prefix="spotladder-store")

    @property
    def endpoint(self) -> str:
        return f"{self._scheme}: {self._endpoint}"

    def renew(self) -> bool:
        """Reopen the client, which reads credentials from files and services only once."""
        if any(self._environment.get(name) or os.environ.get(name) for name in _FIXED[self._scheme]):
            return False
        self._store = self._connected(SMALL_REQUEST_TIMEOUT)
        self._data_store = None
        return True

    def _connected(self, timeout: timedelta) -> S3Store | GCSStore | AzureStore:
        from obstore.store import AzureStore, GCSStore, S3Store

        scheme, environment = self._scheme, self._environment
        backoff = {"init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=5), "base": 2}
        options: dict[str, Any] = {
            "prefix": self._prefix or None,
            "config": {name.lower(): value for name, value in environment.items() if name in _GIVEN[scheme]} or None,
            "client_options": {
                "allow_http": True,  # Only an endpoint that the user wrote with http:// uses it.
                "connect_timeout": CONNECT_TIMEOUT,
                "timeout": timeout,
            },
            # The caller handles longer outages: the log retries with the entries that it has read meanwhile.
            "retry_config": {"max_retries": 5, "retry_timeout": RETRY_TIMEOUT, "backoff": backoff},
        }
        if self._only_host:
            # The library follows redirects. It sends those to other hosts to a proxy that does not exist.
            options["client_options"] |= {"proxy_url": NO_PROXY, "proxy_excludes": self._only_host}
        if self._isolated:
            options |= alone.options(scheme, environment)
        with self._typed("open", ""):
            match scheme:
                case "s3":
                    profile = os.environ.get("AWS_PROFILE")
                    if profile and not (os.environ.get("AWS_ACCESS_KEY_ID") or environment.get("AWS_ACCESS_KEY_ID")):
                        options["credential_provider"] = _profile(profile)
                    return S3Store(self._bucket, **options)
                case "gs":
                    return GCSStore(self._bucket, **options)
                case _:
                    return AzureStore(self._bucket, **options)

    @property
    def _data(self) -> S3Store | GCSStore | AzureStore:
        """The client for files; opened when the first file is transferred."""
        store = self._data_store
        if store is None:
            store = self._data_store = self._connected(DATA_REQUEST_TIMEOUT)
        return store

    def put_if_absent(self, key: str, data: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._typed("create", key):
            try:
                self._store.put(key, data, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    def get(self, key: str, most: int = LARGEST_OBJECT) -> bytes:
        with self._typed("read", key):
            answer = self._store.get(key)  # The answer's head has the size; its body is not read yet.
            size = int(answer.meta["size"])
            if size <= most:
                return bytes(answer.bytes())
        raise TooLarge(f"{self.uri}/{key}", "bytes", size, most)

    def get_many(self, keys: Sequence[str], most: int = LARGEST_OBJECT) -> list[bytes | None]:
        if len(keys) < 2:
            return super().get_many(keys, most)
        # Threads that end with the call: a caller that follows many logs holds many stores.
        with ThreadPoolExecutor(min(len(keys), 2 * AT_ONCE), thread_name_prefix="spotladder-store") as pool:
            return list(pool.map(partial(self._get_or_none, most=most), keys))

    def head(self, key: str) -> ObjectMeta | None:
        try:
            with self._typed("read", key):
                return ObjectMeta(key, self._store.head(key)["size"])
        except ObjectMissing:
            return None

    def list(self, prefix: str, after: str | None = None) -> Iterator[ObjectMeta]:
        with self._typed("list", prefix):
            for page in self._store.list(prefix or None, offset=after, chunk_size=1000):
                for meta in page:
                    # Azure's listing includes `after` itself, azurite's starts at the beginning.
                    if after is None or meta["path"] > after:
                        yield ObjectMeta(meta["path"], meta["size"])

    def folders(self, prefix: str = "") -> Sequence[str]:
        """The names of the folders directly below, with one request for each thousand of them."""
        with self._typed("list", prefix):
            found = self._store.list_with_delimiter(prefix or None)["common_prefixes"]
        return sorted(path.rstrip("/").rpartition("/")[2] for path in found)

    def put_file(self, key: str, path: Path) -> FileEntry:
        with _Parts(path) as parts, self._typed("write", key):
            if parts.length <= PART:
                self._data.put(key, b"".join(parts), use_multipart=False)
            else:
                self._data.put(key, parts, use_multipart=True, chunk_size=parts.each, max_concurrency=AT_ONCE)
        return FileEntry(key.rpartition("/")[2], parts.size, f"{parts.crc:08x}")

    def get_file(self, key: str, path: Path | None) -> FileEntry:
        with (path or Path(os.devnull)).open("wb", buffering=0) as file, self._typed("read", key):
            first = self._beginning(key)
            size = first.meta["size"]

            def fetch(start: int) -> int:
                data = self._data.get_range(key, start=start, end=min(start + RANGE, size))
                return _put(file.fileno(), data, start)

            fetches: dict[int, Future[int]] = {}
            try:
                for start in range(RANGE, size, RANGE):
                    fetches[start] = self._pool.submit(fetch, start)
                crc = _put(file.fileno(), first.bytes(), 0)
                for start, one in fetches.items():
                    crc = crc32_combine(crc, one.result(), min(RANGE, size - start))
            finally:
                # No thread may write to the descriptor after it is closed: another file may get its number.
                wait([one for one in fetches.values() if not one.cancel()])
        return FileEntry(key.rpartition("/")[2], size, f"{crc:08x}")

    def _beginning(self, key: str) -> Any:
        """The first part; its response has the size of the object."""
        from obstore.exceptions import BaseError

        try:
            return self._data.get(key, options={"range": (0, RANGE)})
        except BaseError as error:
            if not _NO_RANGE.search(str(error)):
                raise
            return self._data.get(key)  # An empty object has no ranges.

    def delete(self, keys: Iterable[str]) -> None:
        keys = list(keys)
        if not keys:
            return
        try:
            with self._typed("delete", keys[0]):
                self._store.delete(keys)
        except ObjectMissing:  # Google and Azure report a missing object and stop at it.
            for key in keys:
                try:
                    with self._typed("delete", key):
                        self._store.delete(key)
                except ObjectMissing:
                    continue

    @contextmanager
    def _typed(self, doing: str, key: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as error:
            raise self._failure(doing, key, error) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # a BaseException
                raise
            raise StoreRefused(
                f"cannot {doing} {self.uri}/{key}: the settings do not make a valid request: check the address and "
                f"{_CREDENTIALS[self._scheme]}"
            ) from None

    def _failure(self, doing: str, key: str, error: Exception) -> SpotladderError:
        from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

        text = " ".join(_QUERY.sub("", str(error)).split())
        if isinstance(error, OSError) and error.errno is not None:
            return StoreRefused(
                f"cannot {doing} {self.uri}/{key}: {error.strerror or error} on this machine: free space or correct it"
            )
        missing = isinstance(error, FileNotFoundError)
        if _NO_BUCKET.search(text) or (missing and doing not in ("read", "delete")):
            return StoreRefused(f"{self.uri}: bucket {self._bucket} does not exist: create it or correct the address")
        if missing:
            return ObjectMissing(f"{self.uri}/{key}: no such object")
        if _NO_CREDENTIALS.search(text):
            return RightsRefused(f"{self.uri}: no credentials found: set {_CREDENTIALS[self._scheme]}")
        if "RequestTimeTooSkewed" in text:
            return StoreRefused(f"cannot {doing} {self.uri}/{key}: this machine's clock is wrong: set it")
        if self._scheme == "s3" and _OTHER_REGION.search(text):
            return StoreRefused(
                f"cannot {doing} {self.uri}/{key}: the bucket is in another region: set AWS_REGION to its region"
            )
        said = _said(text)
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or _FORBIDDEN.search(text):
            why = f" ({said})" if said else ""
            return RightsRefused(
                f"cannot {doing} {self.uri}/{key}: access denied{why}: check the bucket's policy and "
                f"{_CREDENTIALS[self._scheme]}"
            )
        return StoreUnavailable(
            f"cannot {doing} {self.uri}/{key}: {_short(text)}: {said or f'check the network and {self._endpoint}'}"
        )


def _put(file: int, data: Any, at: int) -> int:
    """Write the bytes there into the file with this descriptor. Returns their checksum."""
    left = memoryview(data)
    crc: int = crc32(left)
    while left:
        count = os.pwrite(file, left, at)
        left, at = left[count:], at + count
    return crc


def _check(scheme: str, environment: Mapping[str, str]) -> None:
    """Reject settings that cannot be part of a request, by name: the library's error does not name the setting."""
    for name in sorted(_GIVEN[scheme]):
        value = environment.get(name, os.environ.get(name))
        if value is not None and name == "AWS_ENDPOINT_URL" and not re.match(r"https?://[^/\s]", value):
            raise StoreRefused(f"{name} is not an address: set it to http://… or https://…, or unset it")
        if value is not None and name != "GOOGLE_SERVICE_ACCOUNT_KEY" and re.search(r"[\x00-\x1f\x7f]", value):
            raise StoreRefused(
                f"{name} contains a line break or another control character: remove it (use printf instead of echo)"
            )


def _endpoint(scheme: str, environment: Mapping[str, str]) -> str:
    """The endpoint for messages: the variable that sets it, with its value but without credentials."""
    name = "AWS_ENDPOINT_URL"
    value = environment.get(name) or os.environ.get(name, "")
    if scheme != "s3" or not value:
        return "the endpoint"
    address = urlsplit(value)
    return f"{name} ({address._replace(netloc=address.netloc.rpartition('@')[2], query='').geturl()})"


def _short(text: str) -> str:
    """The cause of an obstore error, which wraps it in a description of the requests."""
    text = text.partition(" Debug source:")[0]
    cause = re.search(r"HTTP error: (.*)|Server returned non-2xx status code: ([^:]*)", text)
    return (cause[1] or f"the server answers {cause[2]}") if cause else text[:200]


def _said(text: str) -> str:
    """The error code and the message in a server's answer; "" without them."""
    found = _SAID.search(text)
    return ": ".join(filter(None, found.groups())) if found else ""


def _profile(name: str) -> Any:
    """The credentials of a profile in the user's AWS files, including single sign-on, which only boto3 can read."""
    try:
        from botocore.exceptions import BotoCoreError
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        raise StoreRefused(f"AWS_PROFILE={name} needs boto3: install it, or set {_CREDENTIALS['s3']}") from None
    try:
        return Boto3CredentialProvider()
    except (BotoCoreError, ValueError) as error:
        raise RightsRefused(f"AWS_PROFILE={name}: {error}: correct it, or set {_CREDENTIALS['s3']}") from None


class _Parts:
    """A file's bytes in parts, with the checksum and the number of the bytes read so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = 0
        self.crc = 0

    def __enter__(self) -> _Parts:
        self._file = self._path.open("rb", buffering=0)
        self.length = os.fstat(self._file.fileno()).st_size
        self.each = max(PART, -(-self.length // MAX_PARTS))
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        while part := self._file.read(self.each):
            self.crc = crc32(part, self.crc)
            self.size += len(part)
            yield part
