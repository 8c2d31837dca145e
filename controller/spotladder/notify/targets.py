"""Where messages go: the services of Apprise, and signed webhooks."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from typing import Protocol
from urllib.parse import urlsplit

import apprise
from aiohttp import (
    ClientConnectionError,
    ClientConnectorCertificateError,
    ClientError,
    ClientSession,
    ClientTimeout,
)

from spotladder.errors import InvalidSpec
from spotladder.notify.messages import Message

TIMEOUT = 20.0
"""Seconds after which a receiver counts as not answering."""

WEBHOOK = ("webhook+http", "webhook+https")
"""The schemes of signed webhooks. All others are those of Apprise."""


class Undelivered(Exception):
    """A receiver did not take a message."""


class Target(Protocol):
    """A receiver of messages. `name` contains no secret."""

    name: str

    async def send(self, message: Message) -> None:
        """Deliver the message. Raises Undelivered."""


def target_of(url: str, key: str = "") -> Target:
    """The receiver with this address. `key` signs webhooks. Raises InvalidSpec, without the address, which may be a
    secret."""
    scheme = url.partition("://")[0] if "://" in url else ""
    try:
        return _Webhook(url, key) if scheme in WEBHOOK else _Service(url, scheme)
    except ValueError:
        raise InvalidSpec(f"the address {scheme}://… is not valid: check its host and port") from None


class _Service:
    """A service that Apprise knows."""

    def __init__(self, url: str, scheme: str) -> None:
        service = apprise.Apprise.instantiate(url)
        if service is None:
            raise InvalidSpec(
                f"the address {scheme}://… is none that Apprise understands: see the list at "
                "https://appriseit.com/services/, or use webhook+https://HOST/PATH"
            )
        self.name, self._service = f"{scheme}://…", service

    async def send(self, message: Message) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                done = await asyncio.to_thread(
                    self._service.notify, body=message.body, title=message.title, body_format=apprise.NotifyFormat.TEXT
                )
        except TimeoutError:
            raise Undelivered(f"no answer in {TIMEOUT:g} s") from None
        except Exception as error:  # noqa: BLE001 – a service may have defects: they must not end the messages
            raise Undelivered(type(error).__name__) from None
        if not done:
            raise Undelivered("the service does not answer, or refuses the message")


class _Webhook:
    """An HTTP endpoint that takes CloudEvents in batches, signed as in the specification "Standard Webhooks":
    HMAC-SHA256 of the id, the time and the body. It may not redirect."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url.removeprefix("webhook+")
        address = urlsplit(self._url)
        if not address.hostname:
            raise InvalidSpec("the address of a webhook has no host: write webhook+https://HOST/PATH")
        _ = address.port  # Raises ValueError for an invalid one.
        self.name = f"webhook {address.hostname}"
        self._key = signing_key(key)

    async def send(self, message: Message) -> None:
        body = message.cloud_events()
        headers = {"Content-Type": "application/cloudevents-batch+json", **signed(body, self._key, time.time())}
        try:
            async with (
                ClientSession(timeout=ClientTimeout(TIMEOUT)) as session,
                session.post(self._url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                status = answer.status
        except TimeoutError:
            raise Undelivered(f"no answer in {TIMEOUT:g} s") from None
        except ClientConnectorCertificateError:
            raise Undelivered("its certificate is not trusted") from None
        except ClientConnectionError:
            raise Undelivered("no connection: check the host, the port and the network") from None
        except (ClientError, OSError, ValueError) as error:
            raise Undelivered(type(error).__name__) from None
        if status >= 300:
            raise Undelivered(f"the answer has the status {status}")


def signing_key(key: str) -> bytes:
    """The bytes of a key `whsec_<base64>`, or of any other text. Raises InvalidSpec."""
    if not key.startswith("whsec_"):
        return key.encode()
    try:
        return base64.b64decode(key.removeprefix("whsec_"), validate=True)
    except ValueError:
        raise InvalidSpec("the key of the webhook begins with whsec_, but the rest is not base64") from None


def signed(body: bytes, key: bytes, now: float) -> dict[str, str]:
    """The headers that identify and, with a key, sign a body. The id depends on the body alone, so that a receiver can
    drop a repetition."""
    about = {"webhook-id": hashlib.sha256(body).hexdigest()[:32], "webhook-timestamp": str(int(now))}
    if not key:
        return about
    content = f"{about['webhook-id']}.{about['webhook-timestamp']}.".encode() + body
    signature = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return {**about, "webhook-signature": f"v1,{signature}"}
