"""Secrets with the credentials of commit logs: which Secrets are read, how long they are cached, and the remedies in
the errors."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, cast

import pytest

from spotladder.clusters.errors import Forbidden, NotFound
from spotladder.operator.storage.credentials import (
    MISSING_RETRY_INTERVAL,
    SECRET_TTL,
    CredentialsMissing,
    SecretReader,
)
from spotladder.resources import SECRETS
from tests.clusters.stepped_clock import SteppedClock

KEY = b64encode(b"AKIA").decode()


class SecretServer:
    """A fake client with the Secret `team-a/keys`; an error in `answer` is raised."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.reads = 0

    async def get(self, *named: object) -> Any:
        assert named == (SECRETS, "keys", "team-a")
        self.reads += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def reader(answer: Any) -> tuple[SecretServer, SteppedClock, SecretReader]:
    server, clock = SecretServer(answer), SteppedClock()
    return server, clock, SecretReader(cast("Any", server), clock)


async def test_a_secret_is_read_as_variables_and_kept_for_its_ttl() -> None:
    server, clock, secrets = reader({"data": {"AWS_ACCESS_KEY_ID": KEY}})
    for _ in range(2):
        assert await secrets.of("team-a", "keys") == {"AWS_ACCESS_KEY_ID": "AKIA"}
    assert server.reads == 1
    await clock.advance(SECRET_TTL - 1)
    await secrets.of("team-a", "keys")
    assert server.reads == 1
    await clock.advance(1)
    await secrets.of("team-a", "keys")
    assert server.reads == 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (NotFound(404, "NotFound", ""), "does not exist: create it"),
        (
            Forbidden(403, "Forbidden", ""),
            "may not be read by the controller: add its name to the chart's checkpointSecrets",
        ),
        ({"data": {"KEY": "A"}}, "has a value that is not text"),
        ({"data": {"KEY": b64encode(b"\xff").decode()}}, "has a value that is not text"),
    ],
)
async def test_a_secret_that_cannot_be_used_is_read_again_soon(answer: Any, message: str) -> None:
    server, clock, secrets = reader(answer)
    for _ in range(2):
        with pytest.raises(CredentialsMissing) as raised:
            await secrets.of("team-a", "keys")
        assert str(raised.value) == f"spec.checkpoints.credentials: Secret team-a/keys {message}"
    assert server.reads == 1
    await clock.advance(MISSING_RETRY_INTERVAL)
    server.answer = {"data": {"KEY": KEY}}
    assert await secrets.of("team-a", "keys") == {"KEY": "AKIA"}
