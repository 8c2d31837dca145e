"""Isolated credentials: the environment of the process is not used."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from spotladder.checkpoints.isolated import options
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import StoreRefused
from spotladder.checkpoints.store_check import check_store
from spotladder.errors import StoreUnavailable

AZURE = {"AZURE_STORAGE_ACCOUNT_NAME": "nosuchaccount", "AZURE_STORAGE_ACCOUNT_KEY": "aGVsbG8="}
SAS = {"AZURE_STORAGE_ACCOUNT_NAME": "nosuchaccount", "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=x"}
APP = {"AZURE_STORAGE_ACCOUNT_NAME": "nosuchaccount", "AZURE_CLIENT_ID": "a", "AZURE_CLIENT_SECRET": "b",
       "AZURE_TENANT_ID": "c"}  # fmt: skip


@pytest.mark.parametrize(
    ("scheme", "given", "provided"),
    [
        ("s3", {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
         {"access_key_id": "a", "secret_access_key": "b", "token": None}),
        ("s3", {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c"},
         {"access_key_id": "a", "secret_access_key": "b", "token": "c"}),
        ("az", AZURE, {"access_key": "aGVsbG8="}),
        ("az", {**AZURE, **SAS}, {"access_key": "aGVsbG8="}),
        ("az", SAS, {"sas_token": "sv=1&sig=x"}),
    ],
)  # fmt: skip
def test_only_the_given_credentials_are_used(
    scheme: str, given: Mapping[str, str], provided: Mapping[str, str | None]
) -> None:
    assert options(scheme, given)["credential_provider"]() == {**provided, "expires_at": None}


@pytest.mark.parametrize("given", [AZURE, SAS])
def test_the_workload_identity_of_the_process_is_ignored(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default the library reads the token of the process's identity first, and fails without that file."""
    for name in ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    with pytest.raises(StoreUnavailable) as failed:
        check_store(open_store("az://box/x", given, isolated=True, only_host="no.such.host"))
    assert "federated" not in str(failed.value).lower()


def test_an_application_secret_beside_a_workload_identity_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert options("az", APP) == {}
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", "/nowhere")
    with pytest.raises(StoreRefused, match="AZURE_STORAGE_SAS_TOKEN"):
        open_store("az://box/x", APP, isolated=True)
