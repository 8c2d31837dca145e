"""Opens the store at a checkpoint address. Imports a store's library only when such a store is opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spotladder.checkpoints.store import Store
from spotladder.errors import InvalidSpec
from spotladder.state_folder import with_home


def open_store(
    uri: str | Path, environment: Mapping[str, str] | None = None, *, isolated: bool = False, only_host: str = ""
) -> Store:
    """The store at `s3://bucket/prefix`, `gs://…`, `az://container/…`, `file:///folder` or a plain path.

    Sends no request; `check_store` does. Credentials and endpoints come from each cloud's usual environment variables
    (AWS_…, GOOGLE_…, AZURE_…); those in `environment` take precedence. With `isolated`, `environment` is complete and
    the process's own identity is not used. With `only_host`, no request is sent to another host, not even after a
    redirect. Raises InvalidSpec for an invalid address.
    """
    text = str(uri)
    scheme, separator, rest = text.partition("://")
    if not separator:
        from spotladder.checkpoints.disk import DiskStore

        if not text.strip():
            raise InvalidSpec(
                "the checkpoint address is empty: set it to s3://…, gs://…, az://…, file:///… or a folder"
            )
        return DiskStore(with_home(text))
    if scheme == "file":
        from spotladder.checkpoints.disk import DiskStore

        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise InvalidSpec(f"{text}: a file address has three slashes and a full path: file:///folder")
        if "?" in rest or "#" in rest:
            raise InvalidSpec(f"{text}: a file address has no query and no fragment: write %23 for # and %3F for ?")
        return DiskStore(Path(unquote(parts.path)))
    if scheme not in ("s3", "gs", "az"):
        raise InvalidSpec(f"{scheme}://… is not a checkpoint address: use s3://, gs://, az://, file:/// or a folder")
    bucket, _, prefix = rest.partition("/")
    if not bucket or "@" in bucket:
        raise InvalidSpec(f"the checkpoint address needs a bucket and no credentials: {scheme}://bucket/prefix")
    from spotladder.checkpoints.bucket import BucketStore

    return BucketStore(scheme, bucket, prefix.strip("/"), environment or {}, isolated=isolated, only_host=only_host)
