"""What AWS says about zones and instance types, on moto's copy of its offerings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto import mock_aws

from spotladder.errors import EnvironmentFailure, InvalidSpec
from spotladder_infra.topology.read import read_fleet
from tests.topology.builders import TODAY, fleet_file


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in (("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")):
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield


def ask(folder: Path, *changes: tuple[str, str]) -> None:
    fleet_file(folder, *changes)
    read_fleet(folder / "fleet.yaml", TODAY, online=True)


@pytest.mark.usefixtures("aws")
def test_what_is_offered(tmp_path: Path) -> None:
    ask(tmp_path, ("[p5.48xlarge]", "[m5.large]"))


@pytest.mark.usefixtures("aws")
def test_an_instance_type_that_is_not(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec) as error:
        ask(tmp_path, ("[p5.48xlarge]", "[p9.48xlarge]"))
    assert "spec.clusters[0].pools[3].instanceTypes[0]: p9.48xlarge is not offered in us-east-1a" in str(error.value)
    assert str(error.value).startswith(f"{tmp_path}/fleet.yaml:")


def test_without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(EnvironmentFailure, match="cluster east: AWS cannot be asked"):
        ask(tmp_path)
