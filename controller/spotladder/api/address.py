"""Normalized addresses of checkpoints and of their storage services, for comparison with allowed addresses.

The parsers reject addresses with several spellings (encoded characters, `..`, user information, an IP address as one
number) instead of normalizing them, because programs interpret such addresses differently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Self

from spotladder.errors import InvalidSpec

ANY = "*"
"""The bucket of an allowed address that matches every bucket of the scheme."""

_ADDRESS = re.compile(r"(s3|gs|az|file)://(.*)", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9$](?:[A-Za-z0-9_-]|\.[A-Za-z0-9_-])*")
_NOT_IN_A_FOLDER = re.compile(r"[\x00-\x1f\x7f%\\?#*]")
_ENDPOINT = re.compile(r"(https?)://([^/]*)((?:/[A-Za-z0-9._~-]+)*)/?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:]*)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORTS = {"http": 80, "https": 443}
_LAST_PORT = 65535
_LONGEST_HOST = 253


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A folder in a bucket or, with scheme `file` and no bucket, on a disk. `folders` are the parts of its path."""

    scheme: str
    bucket: str
    folders: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, *, pattern: bool = False) -> Self:
        """`s3://bucket/folder` (gs, az) or `file:///folder`; with `pattern` also `s3://*`. Raises InvalidSpec."""
        matched = _ADDRESS.fullmatch(text)
        if matched is None:
            raise InvalidSpec(
                f"{text!r} is not a checkpoint address: write s3://bucket/folder, gs://, az:// or file:///"
            )
        scheme, rest = matched[1], matched[2]
        bucket, _, path = rest.partition("/")
        wild = pattern and bucket == ANY and not path and scheme != "file"
        if scheme == "file" and not rest.startswith("/"):
            raise InvalidSpec(f"{text!r} needs three slashes and a full path: write file:///folder")
        if scheme != "file" and not wild and not _BUCKET.fullmatch(bucket):
            raise InvalidSpec(
                f"{text!r} has an invalid bucket name (expected letters, digits, '.', '_', '-'): write {scheme}://bucket/folder"
            )
        folders = tuple(path.removesuffix("/").split("/")) if path.removesuffix("/") else ()
        for folder in folders:
            if folder in ("", ".", "..") or _NOT_IN_A_FOLDER.search(folder):
                raise InvalidSpec(
                    f"{text!r} is not normalized: write the folder without '//', '.', '..', '%', '*', '?', '#', '\\'"
                )
        return cls(scheme, bucket, folders)

    def within(self, allowed: StoreAddress) -> bool:
        """Whether this is the allowed folder or one below it."""
        same_bucket = allowed.bucket in (ANY, self.bucket)
        return self.scheme == allowed.scheme and same_bucket and self.folders[: len(allowed.folders)] == allowed.folders

    def __str__(self) -> str:
        return f"{self.scheme}://{'/'.join((self.bucket, *self.folders))}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a service. `host` is a name in lower case or an IP address in canonical form."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, text: str, *, pattern: bool = False) -> Self:
        """`https://host:port`; a path after it is dropped. `pattern`: also `https://*.domain`. Raises InvalidSpec."""
        matched = _ENDPOINT.fullmatch(text) if text.isascii() else None
        authority = _AUTHORITY.fullmatch(matched[2]) if matched else None
        if matched is None or authority is None or {".", ".."} & set(matched[3].split("/")):
            raise InvalidSpec(
                "is not a valid endpoint: write http://host:port or https://host, without user, '%', '?', '#'"
            )
        scheme = matched[1].lower()
        port = int(authority[2]) if authority[2] else _PORTS[scheme]
        if not 0 < port <= _LAST_PORT:
            raise InvalidSpec(f"has an invalid port (expected 1 to {_LAST_PORT}, got {port})")
        return cls(scheme, _host(authority[1], pattern=pattern), port)

    def matches(self, allowed: Endpoint) -> bool:
        """Whether scheme, host and port match the allowed endpoint."""
        if (self.scheme, self.port) != (allowed.scheme, allowed.port):
            return False
        if allowed.host.startswith("*."):
            return self.host.endswith(allowed.host[1:]) and self.host != allowed.host[1:]
        return self.host == allowed.host

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")


def _host(text: str, *, pattern: bool) -> str:
    if text.startswith("["):
        try:
            return str(IPv6Address(text[1:-1]))
        except AddressValueError:
            raise InvalidSpec("must have an IPv6 address between '[' and ']'") from None
    host = text.lower().removesuffix(".")
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):  # every resolver reads this as a number
        try:
            return str(IPv4Address(host))
        except AddressValueError:
            raise InvalidSpec("has an IP address that is not in dotted form: write it as 10.0.0.1") from None
    named = labels[1:] if pattern and labels[0] == ANY and len(labels) > 2 else labels
    if len(host) > _LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in named):
        raise InvalidSpec("must have a valid host name (letters, digits, '-', '.')")
    return host
