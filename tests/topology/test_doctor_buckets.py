"""The doctor checks the buckets that no stack creates."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.checkpoints.memory_store import MemoryStore
from spotladder.checkpoints.store import RightsRefused, Store
from spotladder.errors import StoreUnavailable
from spotladder_infra.doctor import buckets
from spotladder_infra.doctor.result import Status
from spotladder_infra.topology.fleet import Bucket
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
        (refusing(StoreUnavailable("no route")), Status.WARNING, "no route"),
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
    entries = (bucket(cloud=cloud, create=False), bucket())
    fleet = cast("Any", SimpleNamespace(spec=SimpleNamespace(buckets=entries)))
    (result,) = buckets.examine(fleet, opens)
    assert (result.scope, result.check, result.status) == (cloud, f"fence in {place}", status)
    assert result.found.startswith(found)
    assert bool(result.fix) == (status in (Status.FAILED, Status.WARNING))
    assert opened == [(f"{place}/spotladder-doctor", settings)]
