"""The bucket as a filesystem for Ray, through the same library and the same credentials as the commit log.

While the bucket is unavailable, a request is retried until the bucket answers: Ray's reads and writes take longer, and
fail only if the bucket refuses them. Ray cannot wait otherwise, and treats a failed write as the program's failure.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from obstore.fsspec import FsspecStore
from pyarrow.fs import FSSpecHandler, PyFileSystem

FIRST_RETRY_INTERVAL = timedelta(seconds=0.5)
"""Delay before the first retry of a request. Each further delay is twice as long."""

LONGEST_RETRY_INTERVAL = timedelta(seconds=30)
"""Maximum delay between two retries."""

RETRY_TIMEOUT = timedelta(days=7)
"""Time after which a request fails and, with it, the program. `stallTimeout` ends the attempt long before."""

MAX_RETRIES = 1_000_000

REQUEST_TIMEOUT = timedelta(seconds=60)
"""Timeout of one request. A file is transferred in parts of 10 MiB."""


class _Bucket(FsspecStore):
    """Files that accept Arrow's writes: Arrow passes buffers of signed bytes, which obstore's files refuse."""

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        file: Any = super().open(path, mode, **options)
        if "w" in mode:
            write = file.write
            file.write = lambda data: write(bytes(data))
        return file


def filesystem(scheme: str) -> Any:
    """A filesystem for Arrow on buckets of s3, gs or az. It can be pickled, and equals any other of its scheme."""
    # As for the log, accept http:// only for an endpoint that the user wrote so.
    bucket = _Bucket(
        cast("Any", scheme),
        client_options={"allow_http": True, "timeout": REQUEST_TIMEOUT},
        retry_config={
            "max_retries": MAX_RETRIES,
            "retry_timeout": RETRY_TIMEOUT,
            "backoff": {"init_backoff": FIRST_RETRY_INTERVAL, "max_backoff": LONGEST_RETRY_INTERVAL, "base": 2},
        },
    )
    return PyFileSystem(FSSpecHandler(bucket))
