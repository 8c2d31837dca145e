"""The bucket as Ray sees it: through the library that the commit log uses, so that one set of credentials does.

While the bucket is away a request is repeated until it is answered: what Ray reads or writes takes longer, and fails
only when the bucket refuses it. Ray has no other way to wait, and takes a file that it cannot write for the program's
failure.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from obstore.fsspec import FsspecStore
from pyarrow.fs import FSSpecHandler, PyFileSystem

FIRST_RETRY_INTERVAL = timedelta(seconds=0.5)
"""Until the first retry of a request; each further interval is twice as long,"""

LONGEST_RETRY_INTERVAL = timedelta(seconds=30)
"""and no longer than this."""

RETRY_TIMEOUT = timedelta(days=7)
"""An outage that takes longer fails the program; `stallTimeout` ends the attempt long before."""

MOST_RETRIES = 1_000_000

REQUEST_TIMEOUT = timedelta(seconds=60)
"""For one request; a file goes in parts of 10 MiB."""


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
    bucket = _Bucket(
        cast("Any", scheme),
        client_options={"allow_http": True, "timeout": REQUEST_TIMEOUT},
        retry_config={
            "max_retries": MOST_RETRIES,
            "retry_timeout": RETRY_TIMEOUT,
            "backoff": {"init_backoff": FIRST_RETRY_INTERVAL, "max_backoff": LONGEST_RETRY_INTERVAL, "base": 2},
        },
    )
    return PyFileSystem(FSSpecHandler(bucket))
