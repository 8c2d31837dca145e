"""The store contract on servers of several vendors: `make test-stores`. S3 (moto) and Google are part of `make
test`."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import StoreRefused
from spotladder.checkpoints.store_check import check_store
from tests.absent import absent
from tests.checkpoints.contract import StoreContract
from tests.checkpoints.servers import new_bucket, use_s3
from tests.ports import free_port
from tests.stores.servers import azurite, running

# The account of every azurite; its key is public: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    server, folder, port = azurite(), tmp_path_factory.mktemp("azurite"), free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [server, "--blobPort", str(port), "--location", str(folder), "--silent"]
    command += ["--skipApiVersionCheck", "--disableTelemetry"]
    with pytest.MonkeyPatch.context() as environment, running(command, endpoint, folder / "log"):
        environment.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
        environment.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
        environment.setenv("AZURE_STORAGE_ENDPOINT", f"{endpoint}/{ACCOUNT}")
        yield


class TestAzure(StoreContract):
    @pytest.fixture
    def address(self, azure: None) -> str:
        name = f"container-{secrets.token_hex(4)}"
        make_container(name)
        return f"az://{name}/some prefix"

    def test_the_error_names_a_missing_container(self, azure: None) -> None:
        with pytest.raises(StoreRefused, match="bucket nowhere does not exist"):
            check_store(open_store("az://nowhere/prefix"))

    def test_a_wrong_key_is_refused(self, azure: None, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "bm90IHRoZSBrZXk=")
        with pytest.raises(StoreRefused, match=r"access denied .*AZURE_STORAGE_ACCOUNT_KEY"):
            check_store(open_store(address))


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = shutil.which("minio")
    if not server:
        absent("minio is not on the PATH (make test-stores builds it)", "stores")
    folder: Path = tmp_path_factory.mktemp("minio")
    endpoint = f"http://127.0.0.1:{free_port()}"
    command = [server, "server", str(folder / "data"), "--address", endpoint.removeprefix("http://"), "--quiet"]
    secret = {"MINIO_ROOT_USER": "spotladder", "MINIO_ROOT_PASSWORD": "spotladder-test"}
    with (
        pytest.MonkeyPatch.context() as environment,
        running(command, f"{endpoint}/minio/health/live", folder / "log", secret),
    ):
        use_s3(environment, endpoint, "spotladder", "spotladder-test")
        yield endpoint


class TestMinio(StoreContract):
    @pytest.fixture
    def address(self, minio: str) -> str:
        return new_bucket(minio)

    def test_wrong_credentials_are_refused(self, minio: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not the secret")
        with pytest.raises(StoreRefused, match=r"access denied .*AWS_SECRET_ACCESS_KEY") as caught:
            check_store(open_store(address))
        assert "not the secret" not in str(caught.value)


def make_container(name: str) -> None:
    """Create a container with a signed request: the product never creates buckets, so it has no code for it."""
    import base64
    import hashlib
    import hmac
    import os
    from email.utils import formatdate
    from urllib.request import Request, urlopen

    date = formatdate(usegmt=True)
    path = f"/{ACCOUNT}/{name}"
    signed = (
        f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-08-06\n/{ACCOUNT}{path}\nrestype:container"
    )
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()).decode()
    headers = {"x-ms-date": date, "x-ms-version": "2021-08-06", "Content-Length": "0"}
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{signature}"
    address = f"{os.environ['AZURE_STORAGE_ENDPOINT']}/{name}?restype=container"
    with urlopen(Request(address, method="PUT", headers=headers)):
        pass
