"""The bucket as Ray sees it: through the library that the commit log uses, so that one set of credentials does."""

from __future__ import annotations

from typing import Any, cast

from obstore.fsspec import FsspecStore
from pyarrow.fs import FSSpecHandler, PyFileSystem


class _Bucket(FsspecStore):
    """Files that take what Arrow writes: it hands over buffers of signed bytes, which obstore's files refuse."""

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        file: Any = super().open(path, mode, **options)
        if "w" in mode:
            write = file.write
            file.write = lambda data: write(bytes(data))
        return file


def filesystem(scheme: str) -> Any:
    """A filesystem for Arrow on the buckets of s3, gs or az. Can be pickled; equal to any other of its scheme."""
    # As for the log, http:// is right for an endpoint that the user wrote so.
    return PyFileSystem(FSSpecHandler(_Bucket(cast("Any", scheme), client_options={"allow_http": True})))
