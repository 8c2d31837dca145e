"""The doctor checks the buckets that no stack creates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spotladder.checkpoints.store import RightsRefused, Store
from spotladder.errors import StoreUnavailable
from spotladder_infra.doctor.examination import FOLDER, fences
from spotladder_infra.doctor.result import Check, Status, results
from spotladder_infra.topology.fleet import Bucket
from tests.checkpoints.memory_store import MemoryStore
from tests.checkpoints.unsafe_stores import Ignores


def refusing(error: Exception) -> Callable[[], Store]:
    class Refusing(MemoryStore):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            raise error

    return Refusing


def bucket(**more: Any) -> Bucket:
    return Bucket.model_validate({"name": "team-checkpoints", "cloud": "aws", "region": "us-east-1", **more})


@pytest.mark.parametrize(
    ("store", "status", "found"),
    [
        (MemoryStore, Status.OK, "of several writers one succeeds"),
        (Ignores, Status.FAILED, "a second create of an object succeeds, so an attempt that was cut off"),
        (refusing(RightsRefused("access denied")), Status.SKIPPED, "access denied"),
        (refusing(StoreUnavailable("no route")), Status.SKIPPED, "no route"),
    ],
)
@pytest.mark.parametrize(
    ("cloud", "address"),
    [
        ("aws", ("s3://team-checkpoints", {"AWS_REGION": "us-east-1"})),
        ("gcp", ("gs://team-checkpoints", {})),
    ],
)
def test_an_existing_bucket_must_be_able_to_fence(
    store: Callable[[], Store], status: Status, found: str, cloud: str, address: tuple[str, dict[str, str]]
) -> None:
    opened = []

    def opens(uri: str, given: Any) -> Store:
        opened.append((uri, given))
        return store()

    place, settings = address
    uri = f"{place}/{FOLDER}"
    (result,) = results([Check(cloud, "fence", lambda: fences(bucket(cloud=cloud, create=False), uri, opens))])
    assert result.status == status
    assert result.found.startswith(found)
    assert bool(result.fix) == (status is Status.FAILED)
    assert opened == [(uri, settings)]
