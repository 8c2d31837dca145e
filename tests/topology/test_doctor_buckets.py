"""The doctor checks the buckets that no stack creates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spotladder.checkpoints.store import RightsRefused, Store
from spotladder.errors import StoreUnavailable
from spotladder_infra.doctor import examination
from spotladder_infra.doctor.result import Status, results
from tests.checkpoints.memory_store import MemoryStore
from tests.checkpoints.unsafe_stores import Ignores
from tests.topology.amazon import no_credentials
from tests.topology.builders import fleet_file


def refusing(error: Exception) -> Callable[[], Store]:
    class Refusing(MemoryStore):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            raise error

    return Refusing


@pytest.mark.parametrize(
    ("store", "status", "found"),
    [
        (MemoryStore, Status.OK, "of several writers one succeeds"),
        (Ignores, Status.FAILED, "a second create of an object succeeds, so an attempt that was cut off"),
        (refusing(RightsRefused("access denied")), Status.SKIPPED, "access denied"),
        (refusing(StoreUnavailable("no route")), Status.SKIPPED, "no route"),
    ],
)
def test_an_existing_bucket_must_be_able_to_fence(
    store: Callable[[], Store], status: Status, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: dict[str, Any] = {}

    def opens(uri: str, settings: Any) -> Store:
        opened[uri] = settings
        return store()

    monkeypatch.setattr(examination, "open_store", opens)
    regions = ("cloud: aws, region: us-east-1", "cloud: gcp, region: us-central1")
    fleet = fleet_file(tmp_path, *((region, f"{region}, create: false") for region in regions)).fleet
    fences = [check for check in examination.buckets(fleet) if check.name.startswith("fence")]
    for result in results(fences):
        assert result.status == status
        assert result.found.startswith(found)
        assert bool(result.fix) == (status is Status.FAILED)
    assert opened == {
        f"s3://acme-east/{examination.FOLDER}": {"AWS_REGION": "us-east-1"},
        f"gs://acme-central/{examination.FOLDER}": {},
    }


def test_without_credentials_the_state_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_credentials(tmp_path, monkeypatch)
    (found,) = results(examination.buckets(fleet_file(tmp_path).fleet))
    assert (found.status, found.check) == (Status.SKIPPED, "s3://acme-state/fleet")
    assert found.found.startswith("AWS does not answer: Unable to locate credentials: check the credentials")
