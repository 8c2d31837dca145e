"""A commit log is opened only with credentials that the job's Secret or an access rule provides."""

from __future__ import annotations

from typing import Any, cast

import pytest

from spotladder.api.stored import JobRecord
from spotladder.core.model import JobState, Progress, Stage
from spotladder.operator.reading import Reading
from spotladder.operator.storage.commit_logs import LogAddress
from spotladder.operator.storage.credentials import CredentialsMissing
from spotladder.operator.storage.readings import Readings
from tests.workloads.builders import job, ray_template

RECORD = JobRecord(name="digits", namespace="team-a", uid="u")
STATE = JobState(stage=Stage.RUNNING, progress=Progress(step=7))
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
JOB = job(ray_template())


class Followed:
    """A fake of the logs and of the Secrets. `held` is the content of the job's Secret."""

    def __init__(self, held: dict[str, str] | Exception) -> None:
        self.held = held
        self.addresses: list[LogAddress] = []
        self.left = 0

    async def of(self, _namespace: str, _name: str) -> dict[str, str]:
        if isinstance(self.held, Exception):
            raise self.held
        return self.held

    def follow(self, _key: object, address: LogAddress, _every: float) -> Reading:
        self.addresses.append(address)
        return Reading(True)

    def unfollow(self, _key: object) -> None:
        self.left += 1


def reading(held: dict[str, str] | Exception, *, secret: bool = True) -> tuple[Readings, Followed, Any]:
    world = Followed(held)
    checkpoints: dict[str, Any] = {"uri": "s3://bucket/x"}
    if secret:
        checkpoints["credentials"] = {"secretName": "bucket"}
    of_job = JOB.model_copy(
        update={"spec": JOB.spec.model_copy(update={"checkpoints": type(JOB.spec.checkpoints)(**checkpoints)})}
    )
    return Readings(cast("Any", world), cast("Any", world), ()), world, of_job


async def test_the_log_is_opened_with_only_the_credentials_of_the_secret() -> None:
    readings, world, of_job = reading(KEYS)
    assert await readings.of(RECORD, of_job, STATE) == Reading(True)
    (address,) = world.addresses
    assert address.grant.isolated
    assert address.grant.environment == KEYS


@pytest.mark.parametrize(
    ("held", "secret", "denied"),
    [({}, True, True), ({}, False, True), (CredentialsMissing("there is no Secret"), True, False)],
)
async def test_without_credentials_the_log_is_not_opened_and_the_known_progress_is_kept(
    held: dict[str, str] | Exception, secret: bool, denied: bool
) -> None:
    readings, world, of_job = reading(held, secret=secret)
    found = await readings.of(RECORD, of_job, STATE)
    assert (found.known, found.progress, found.denied, found.locked) == (True, STATE.progress, denied, not denied)
    assert found.unreadable
    assert (world.addresses, world.left) == ([], 1)
