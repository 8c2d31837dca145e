"""The store contract on an S3 server behind the controller's proxy."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from spotladder.api.address import Endpoint
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import Store
from spotladder.operator.storage.egress_proxy import Egress, Permit
from tests.checkpoints.contract import StoreContract
from tests.checkpoints.servers import moto, new_bucket

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as environment, moto(environment) as found:
        yield found


@pytest.fixture(scope="module")
def permit(endpoint: str) -> Iterator[Permit]:
    """A permit of a proxy that runs in its own event loop, as in the controller."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    egress = Egress()
    asyncio.run_coroutine_threadsafe(egress.__aenter__(), loop).result(600)
    try:
        yield egress.permit(Endpoint.parse(endpoint), loopback=True)
    finally:
        asyncio.run_coroutine_threadsafe(egress.__aexit__(), loop).result(600)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(600)
        loop.close()


class TestS3ThroughTheProxy(StoreContract):
    @pytest.fixture
    def store(self, endpoint: str, permit: Permit) -> Store:
        given = {**KEYS, "AWS_ENDPOINT_URL": endpoint}
        return open_store(new_bucket(endpoint), given, isolated=True, proxy=permit.proxy)
