"""Value types of `spec.checkpoints`: the commit interval, the address of the commit log, and the size of the cache."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from spotladder.api.fields import checked_text, filled_text, positive_duration, refused
from spotladder.api.problems import quoted
from spotladder.api.suggest import closest
from spotladder.core.durations import format_duration, parse_duration
from spotladder.core.model import Seconds

_STEPS = re.compile(r"([0-9]{1,12}) ?steps?")
_SCHEMES = ("s3", "gs", "az", "file")
_OTHER_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "gsutil": "gs", "azure": "az", "abfs": "az", "abfss": "az",
                  "wasb": "az", "wasbs": "az", "nfs": "file"}  # fmt: skip
_VARIABLE = re.compile(r"\$(?:\{[^}]*\}?|\([^)]*\)?|[A-Za-z_][A-Za-z0-9_]*)")
_DISK_SIZE = re.compile(r"([0-9]{1,18})(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?")
_DISK_UNITS: dict[str, int] = {
    "": 1,
    **{unit: 1000**power for power, unit in enumerate("kMGTP", 1)},
    **{f"{unit}i": 1024**power for power, unit in enumerate("KMGTP", 1)},
}
_SMALLEST_DISK = 1 << 20


def _interval(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        in_steps = f"{value}steps or " if isinstance(value, int) else ""
        raise refused(f"needs a unit: write {in_steps}{value}s")
    if not isinstance(value, str):
        raise refused("must be a number of steps or a duration, like 50steps or 5m")
    if steps := _STEPS.fullmatch(value.strip().lower()):
        if not int(steps[1]):
            raise refused("must be at least 1steps")
        return f"{int(steps[1])}steps"
    return format_duration(positive_duration(value))


Interval = Annotated[
    str,
    BeforeValidator(_interval),
    WithJsonSchema({"type": "string", "pattern": r"^([0-9]+steps|([0-9]+(\.[0-9]+)?(ms|h|m|s))+)$"}),
]
"""`50steps` or a duration."""


def interval_seconds(interval: str) -> Seconds | None:
    """The time between two commits with this `checkpoints.interval`; None if it is a number of steps."""
    return None if interval.endswith("steps") else parse_duration(interval)


def checkpoint_uri(value: Any) -> str:
    """The address of a folder or an object of a bucket. Raises the validator's error for another value."""
    uri = checked_text(value)
    if variable := _VARIABLE.search(uri):
        home = "; ~ stands for the home folder" if "://" not in uri else ""
        raise refused(f"contains {quoted(variable[0])}: environment variables are not expanded; write the value{home}")
    scheme, separator, rest = uri.partition("://")
    if not separator:
        if one_slash := re.match(rf"({'|'.join(_SCHEMES)}):", uri, re.IGNORECASE):
            raise refused(f"needs two slashes after the colon: write {one_slash[1].lower()}://…")
        return filled_text(uri)
    if scheme.lower() in ("http", "https"):
        raise refused("must name a bucket, like s3://bucket/prefix; an endpoint is set by AWS_ENDPOINT_URL")
    if scheme.lower() not in _SCHEMES:
        other = _OTHER_SCHEMES.get(scheme.lower()) or closest(scheme.lower(), _SCHEMES)
        hint = f"; write {other}://…" if other else ""
        raise refused(
            f"scheme {quoted(scheme)} is not supported: use s3://, gs://, az://, file:// or a plain path{hint}"
        )
    if "@" in rest.split("/")[0]:
        raise refused("must not contain credentials: set them in the environment or name a secret in credentials")
    if "?" in rest or "#" in rest:
        raise refused("must not have a query or fragment: write scheme://bucket/prefix")
    if scheme.lower() == "file":
        if not rest.startswith("/"):
            raise refused(f"needs an absolute path after file://: write file:///{rest}")
    elif not rest.split("/")[0]:
        raise refused(f"has no bucket: write {scheme.lower()}://bucket/prefix")
    if not {".", ".."}.isdisjoint(rest.split("/")):
        raise refused('must not contain "." or ".." as a part of the path: write the path without it')
    return f"{scheme.lower()}://{rest}"


CheckpointUri = Annotated[str, BeforeValidator(checkpoint_uri)]


def _program_folder(value: Any) -> str:
    folder = filled_text(value)
    if "://" in folder:
        raise refused("must be a folder on the disk of the program, not a bucket: name the bucket in uri")
    if not folder.isprintable():
        raise refused("must not contain control characters")
    return folder


ProgramFolder = Annotated[str, BeforeValidator(_program_folder), WithJsonSchema({"type": "string", "minLength": 1})]


def disk_bytes(size: str) -> int:
    """The bytes of a DiskSize."""
    match = _DISK_SIZE.fullmatch(size)
    if not match:
        raise ValueError(f"{quoted(size)} is not a size: write one like 20Gi or 500Mi")
    number, unit = match[1], match[2] or ""
    return int(number) * _DISK_UNITS[unit]


def _disk_size(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise refused("must be a size like 20Gi or 500Mi")
    try:
        size = disk_bytes(str(value))
    except ValueError as error:
        raise refused(str(error)) from None
    if size < _SMALLEST_DISK:
        raise refused(f"must be at least 1Mi, not {value}; write a size like 20Gi")
    if size > 1000 * _DISK_UNITS["P"]:
        raise refused("must be at most 1000P")
    return str(value)


DiskSize = Annotated[
    str,
    BeforeValidator(_disk_size),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "pattern": r"^[0-9]+(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$"}),
]
"""A whole number of bytes, or of a unit of Kubernetes, of at least 1Mi."""
