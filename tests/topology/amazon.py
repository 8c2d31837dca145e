"""AWS for tests: moto's account, and the services that moto lacks; botocore checks the requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from spotladder_infra.facts import addons

KUBERNETES = "1.35"
G_SPOT = "L-3819A6DF"


class Amazon:
    """Quotas, versions of EKS and its add-ons, and refused requests. Moto answers everything else.

    `offered` are the versions of each add-on; the first one is the default. At first they are the recorded ones.
    `cluster` is an EKS cluster, of which moto lacks a part, and `installed` its add-ons.
    """

    def __init__(self) -> None:
        self.quotas: dict[str, float] = {}
        self.versions = {KUBERNETES: "STANDARD_SUPPORT"}
        self.offered: dict[str, list[str]] = {name: [version] for name, version in addons.PINNED[KUBERNETES].items()}
        self.refused: set[str] = set()
        self.cluster: dict[str, Any] = {}
        self.installed: set[str] = set()
        self.only_defaults = False

    def connect(self, service: str, region: str) -> Any:
        client = boto3.client(service, region_name=region)
        client.meta.events.register(f"before-call.{service}", self._answer)
        return client

    def _answer(self, model: Any, params: Any, **_: Any) -> Any:
        """Responds to requests that botocore's own serializer has checked; None passes the call to moto."""
        if model.name == "GetServiceQuota" and self.only_defaults:
            return SimpleNamespace(status_code=404), {"Error": {"Code": "NoSuchResourceException", "Message": "none"}}
        if model.name in self.refused:
            error = {"Error": {"Code": "AccessDeniedException", "Message": "not allowed"}}
            return SimpleNamespace(status_code=403), error
        if model.name == "DescribeCluster" and self.cluster:
            return SimpleNamespace(status_code=200), {"cluster": self.cluster}
        if model.name == "DescribeAddon":
            if any(f"/addons/{name}" in params["url_path"] for name in self.installed):
                return SimpleNamespace(status_code=200), {"addon": {}}
            error = {"Error": {"Code": "ResourceNotFoundException", "Message": "none"}}
            return SimpleNamespace(status_code=404), error
        if model.name == "DescribeAddonVersions":
            return SimpleNamespace(status_code=200), self._addon(params["query_string"])
        answer = getattr(self, f"_{model.name}", None)
        return None if answer is None else (SimpleNamespace(status_code=200), answer(str(params)))

    def _addon(self, query: Mapping[str, Any]) -> dict[str, Any]:
        assert query["kubernetesVersion"] == KUBERNETES
        name = str(query["addonName"])
        versions = [
            {
                "addonVersion": version,
                "compatibilities": [{"clusterVersion": KUBERNETES, "defaultVersion": place == 0}],
            }
            for place, version in enumerate(self.offered[name])
        ]
        return {"addons": [{"addonName": name, "addonVersions": versions}]}

    def _GetServiceQuota(self, asked: str) -> Any:  # noqa: N802 – names of AWS's operations
        code = next((code for code in self.quotas if code in asked), None)
        return {"Quota": {"Value": 1000.0 if code is None else self.quotas[code]}}

    def _GetAWSDefaultServiceQuota(self, asked: str) -> Any:  # noqa: N802
        return {"Quota": {"Value": 0.0 if G_SPOT in asked else 5.0}}

    def _DescribeClusterVersions(self, asked: str) -> Any:  # noqa: N802
        found = [(minor, status) for minor, status in self.versions.items() if minor in asked]
        return {"clusterVersions": [{"versionStatus": status} for _, status in found]}


@contextmanager
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Amazon]:
    """An empty account and credentials for it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws(config={"core": {"reset_boto3_session": False}}):  # A session reads the model of EC2 once, in 0.3 s.
        yield Amazon()


def no_credentials(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides all credentials of this machine."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(folder / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it keeps the credentials of an earlier test
