"""Servers for tests on free ports of 127.0.0.1."""

from __future__ import annotations

import json
import secrets
import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.s3_server import started


class OutageProxy:
    """A proxy on 127.0.0.1. It forwards to a server, except during an outage of a `kind`:

    `refused`: connections are reset. `503`: every response is 503. `hanging`: there is no response.
    """

    def __init__(self, endpoint: str) -> None:
        self.kind = ""
        self._upstream = urlsplit(endpoint)
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def begin(self, kind: str) -> None:
        """Begin the outage, also for open connections."""
        self.kind = kind
        if kind != "hanging":
            self._drop_all()

    def end(self) -> None:
        self.kind = ""
        self._drop_all()

    def close(self) -> None:
        self._drop_all()
        self._listener.close()

    def _drop_all(self) -> None:
        for connection in list(self._open):
            self._open.discard(connection)
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        self._open.add(caller)
        with suppress(OSError), caller:
            if self.kind == "refused":
                caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            if self.kind == "503":
                caller.recv(1 << 16)
                caller.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            with socket.create_connection((self._upstream.hostname or "", self._upstream.port or 0)) as server:
                self._open.add(server)
                back = threading.Thread(target=self._pass_on, args=(server, caller), daemon=True)
                back.start()
                self._pass_on(caller, server)
                back.join()
                self._open.discard(server)
        self._open.discard(caller)

    def _changed(self, data: bytes) -> bytes:
        return data

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                while self.kind == "hanging":
                    time.sleep(0.01)
                target.sendall(self._changed(data))
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


class ChangedRequests(OutageProxy):
    """A proxy that replaces `old` by `new`, which is as long, in every request."""

    def __init__(self, endpoint: str, old: bytes, new: bytes) -> None:
        assert len(old) == len(new)
        self._old, self._new = old, new
        super().__init__(endpoint)

    def _changed(self, data: bytes) -> bytes:
        return data.replace(self._old, self._new)


@contextmanager
def moto(environment: pytest.MonkeyPatch) -> Iterator[str]:
    """An S3 server (moto). Yields its endpoint and sets the environment variables for it."""
    server, endpoint = started("127.0.0.1")
    try:
        use_s3(environment, endpoint, "test", "test")
        yield endpoint
    finally:
        server.stop()


def use_s3(environment: pytest.MonkeyPatch, endpoint: str, key: str, secret: str) -> None:
    environment.setenv("AWS_ENDPOINT_URL", endpoint)
    environment.setenv("AWS_ACCESS_KEY_ID", key)
    environment.setenv("AWS_SECRET_ACCESS_KEY", secret)
    environment.setenv("AWS_REGION", "us-east-1")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        environment.delenv(name, raising=False)


def use_profile(environment: pytest.MonkeyPatch, endpoint: str, file: Path, key: str, secret: str) -> None:
    """Use the profile `team` of this credentials file, with this key."""
    use_s3(environment, endpoint, key, secret)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        environment.delenv(name)
    environment.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    environment.setenv("AWS_PROFILE", "team")
    write_profile(file, key, secret)


def write_profile(file: Path, key: str, secret: str) -> None:
    """Replace the key of the profile `team`."""
    file.write_text(f"[team]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")


def new_bucket(endpoint: str) -> str:
    """Create a bucket on an S3 server and return its address."""
    import boto3

    name = f"bucket-{secrets.token_hex(4)}"
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket=name)
    return f"s3://{name}/some prefix"


class Keys:
    """The access keys of one user of a moto server that checks them."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["*"], "Resource": "*"}]}
        iam = self._iam()
        self._user = secrets.token_hex(4)
        iam.create_user(UserName=self._user)
        iam.put_user_policy(UserName=self._user, PolicyName="all", PolicyDocument=json.dumps(everything))
        self._free = [iam.create_access_key(UserName=self._user)["AccessKey"] for _ in range(2)]

    def take(self) -> tuple[str, str]:
        """An unused key: its id and its secret."""
        key = self._free.pop()
        return key["AccessKeyId"], key["SecretAccessKey"]

    def revoke(self, key: str, secret: str) -> None:
        """Delete a key. The key itself signs the request, because the server refuses requests without a valid key."""
        iam = self._iam(aws_access_key_id=key, aws_secret_access_key=secret)
        iam.delete_access_key(UserName=self._user, AccessKeyId=key)

    def _iam(self, **credentials: str) -> Any:
        import boto3

        # A session of its own: the default one may have read its settings before the test changed them.
        session = boto3.Session()
        return session.client("iam", endpoint_url=self._endpoint, region_name="us-east-1", **credentials)


@contextmanager
def checked_keys(endpoint: str) -> Iterator[Keys]:
    """Meanwhile the moto server checks the keys, signatures and policies of all requests."""
    keys = Keys(endpoint)
    _check_keys_after(endpoint, "0")
    try:
        yield keys
    finally:
        _check_keys_after(endpoint, "inf")


def _check_keys_after(endpoint: str, requests: str) -> None:
    url = f"{endpoint}/moto-api/reset-auth"
    urllib.request.urlopen(urllib.request.Request(url, requests.encode(), {"Content-Type": "text/plain"}), timeout=10)
