"""A store that cannot fence an attempt is refused, with the promise that it breaks."""

from __future__ import annotations

import os
import pickle
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spotladder.checkpoints.bucket import BucketStore
from spotladder.checkpoints.disk import DiskStore
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import RightsRefused, Store, StoreRefused, folder_of
from spotladder.checkpoints.store_check import CREATORS, Promise, StoreUnsafe, check_store, check_today
from spotladder.errors import StoreUnavailable
from tests.checkpoints import unsafe_stores
from tests.checkpoints.memory_store import MemoryStore
from tests.checkpoints.servers import ChangedRequests, moto, new_bucket

NOON = 1_800_014_400.0  # 2027-01-15
DAY = 86400.0
CUT_OFF = "an attempt that was cut off could overwrite its successor's checkpoints"
OLD = "an attempt could resume from an old checkpoint"

UNSAFE: dict[str, tuple[Callable[[], Store], Promise, str]] = {
    "ignores the condition": (
        unsafe_stores.Ignores,
        Promise.CREATE,
        f"a second create of an object succeeds, so {CUT_OFF}",
    ),
    "does not implement the condition": (
        unsafe_stores.DoesNotImplement,
        Promise.CREATE,
        f"the store does not implement conditional creates, so {CUT_OFF}",
    ),
    "races": (
        lambda: unsafe_stores.Races(CREATORS),
        Promise.RACE,
        f"{CREATORS} of {CREATORS} simultaneous creates of one object succeed, so {CUT_OFF}",
    ),
    "reads late": (
        unsafe_stores.ReadsLate,
        Promise.READ,
        f"an object cannot be read after it was created, so {OLD}",
    ),
    "reads from a cache": (
        unsafe_stores.ReadsOld,
        Promise.READ,
        f"an object does not have its content after it was created, so {OLD}",
    ),
    "lists late": (
        unsafe_stores.ListsLate,
        Promise.LIST,
        f"an object is not listed after it was created, so {OLD}, or commit beside its successor",
    ),
    "loses the body": (
        unsafe_stores.LosesBodies,
        Promise.LIST,
        f"an object of 64 bytes is listed with 0 bytes after it was created, so {OLD}",
    ),
    "loses the object": (
        unsafe_stores.LosesObjects,
        Promise.LIST,
        f"an object is not listed after it was created, so {OLD}",
    ),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_store_is_refused(name: str) -> None:
    make, promise, says = UNSAFE[name]
    store = make()
    with pytest.raises(StoreUnsafe) as caught:
        check_store(store)
    assert caught.value.promise is promise
    assert str(caught.value).startswith(f"{store.uri}: the store is not safe for checkpoints: {says}")
    assert str(caught.value).endswith(f"{caught.value.found}: {caught.value.remedy}")
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 – our own; Ray sends errors of workers in this form
    assert (str(again), again.promise) == (str(caught.value), promise)


@pytest.mark.parametrize(("make", "timeout"), [(unsafe_stores.HangsInRaces, 0.05), (MemoryStore, 0.0)])
def test_the_check_of_a_slow_store_has_a_deadline(make: Callable[[], MemoryStore], timeout: float) -> None:
    store = make()
    try:
        with pytest.raises(StoreUnavailable, match=r"was not finished after 0(\.05)? s: check the network") as caught:
            check_store(store, timeout=timeout)
    finally:
        getattr(store, "released", threading.Event()).set()
    assert not isinstance(caught.value, StoreRefused), "a later check may pass"


def test_a_lost_response_is_no_broken_promise() -> None:
    """The client repeats a create whose response was lost, and the store reports that the object exists."""

    class LosesResponses(MemoryStore):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            super().put_if_absent(key, data)
            return False

    check_store(LosesResponses())


@pytest.mark.parametrize(
    "error", [RightsRefused("access denied"), StoreUnavailable("cannot create s3://bucket/llama-501/k: 503 Slow Down")]
)
def test_an_error_of_the_store_is_no_broken_promise(error: StoreUnavailable) -> None:
    class Fails(MemoryStore):
        def arrived(self, request: str, key: str) -> None:
            if request == "put":
                raise error

    with pytest.raises(StoreUnavailable) as caught:
        check_store(Fails())
    assert caught.value is error


def test_a_store_that_keeps_every_object_is_safe() -> None:
    class Retains(MemoryStore):
        def arrived(self, request: str, key: str) -> None:
            if request == "delete":
                raise StoreRefused("object is locked")

    check_store(Retains())


class Counted(MemoryStore):
    """A store that counts requests, as they would be sent to a bucket."""

    endpoint = "s3: the endpoint"

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[str] = []

    def arrived(self, request: str, key: str) -> None:
        self.requests.append(request)


def test_a_bucket_is_checked_once_a_day() -> None:
    store = Counted()
    check_today(store, lambda: NOON)
    assert {kind: store.requests.count(kind) for kind in store.requests} == {
        "get": 1 + 2, "put": 2 + CREATORS + 1, "list": 2, "delete": 2,
    }  # fmt: skip
    assert [key[: len("probes/20270115-passed-")] for key in store.objects] == ["probes/20270115-passed-"]
    store.requests.clear()
    check_today(store, lambda: NOON + 3600)
    assert store.requests == ["get"]
    check_today(store, lambda: NOON + DAY)
    assert len(store.requests) > len(store.objects)
    store.endpoint = "s3: AWS_ENDPOINT_URL (http://old-gateway:9000)"
    store.requests.clear()
    check_today(store, lambda: NOON + DAY)
    assert "put" in store.requests, "another server is another store"


def test_a_folder_is_checked_at_each_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine may have mounted it in another way."""
    store = DiskStore(tmp_path)
    check_today(store)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(os, "link", shutil.copyfile)
    with pytest.raises(StoreUnsafe, match=r"a second create of an object succeeds, .*noac.*hard links"):
        check_today(store)


def test_old_probes_and_markers_are_deleted() -> None:
    store = MemoryStore()
    left = [f"probes/202701{day:02}-{name}" for day in (13, 14, 15) for name in ("passed-1", "ab/created", "ab/raced")]
    for key in (*left, "probes/.nfs0001", "log/00000000.json"):
        store.objects[key] = b""
    check_store(store, lambda: NOON)
    assert sorted(store.objects) == sorted([*left[3:], "probes/.nfs0001", "log/00000000.json"])


def test_the_log_ignores_probes() -> None:
    store = Counted()
    log = CommitLog(store, "digits")
    check_today(folder_of(store, "digits"), lambda: NOON)
    assert log.read().seq == -1
    assert log.start(1).start.seq == 0


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as environment, moto(environment) as endpoint:
        yield endpoint


def test_a_gateway_that_drops_the_condition_is_refused(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    address = new_bucket(s3)
    check_today(open_store(address))
    gateway = ChangedRequests(s3, b"if-none-match:", b"x-drop-match-:")
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", gateway.endpoint)
        store = open_store(address)
        assert isinstance(store, BucketStore)
        with pytest.raises(StoreUnsafe, match=r"a second create of an object succeeds, .*MinIO since August 2024"):
            check_today(folder_of(store, "digits"))
        assert not list(store.list("digits/"))
    finally:
        gateway.close()
