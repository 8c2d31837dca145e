"""Errors of the real Terraform and the real AWS provider, as the one line that users see."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from spotladder_infra.terraform.stack import TerraformFailed, TerraformStack
from spotladder_infra.terraform.tool import find
from tests.absent import absent
from tests.infra import tool

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
CONFIGURATION: dict[str, Any] = {
    "terraform": {"required_providers": {"aws": {"source": "hashicorp/aws", "version": ">= 5.95.0, < 7.0.0"}}},
    "provider": {"aws": {"region": "us-east-1", "s3_use_path_style": True}},
    "resource": {"aws_iam_role": {"node": {"name": "failing-node", "assume_role_policy": json.dumps(TRUST)}}},
}
BACKEND = {
    "bucket": "failing-state",
    "key": "fleet/east.tfstate",
    "region": "us-east-1",
    "use_path_style": True,
    "use_lockfile": True,
}
LOCK = {
    "ID": "11111111-2222-3333-4444-555555555555",
    "Operation": "OperationTypeApply",
    "Info": "",
    "Who": "ana@build-7",
    "Version": "1.11.4",
    "Created": "2026-11-22T18:03:11.531Z",
    "Path": "failing-state/fleet/east.tfstate",
}

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def environment(emulator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    if tool.binary() is None:
        absent("neither terraform nor tofu is on the PATH", "infra")
    if not os.environ.get("SPOTLADDER_TERRAFORM_PLUGINS"):
        absent("the AWS provider is not available (SPOTLADDER_TERRAFORM_PLUGINS)", "infra")
    found = {**tool.environment(tmp_path), "AWS_ENDPOINT_URL": emulator, "AWS_MAX_ATTEMPTS": "1"}
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    return {**os.environ, **found}


def stack(folder: Path, environment: dict[str, str], **changes: Any) -> TerraformStack:
    configuration = {**CONFIGURATION, **changes}
    configuration["terraform"] = {**CONFIGURATION["terraform"], **changes.get("terraform", {})}
    (folder / "cdk.tf.json").write_text(json.dumps(configuration))
    return TerraformStack(find(environment), folder, "east", environment)


def failure(made: TerraformStack) -> str:
    """The line of a plan that fails."""

    def prepare_and_plan() -> None:
        made.init()
        made.plan()

    with pytest.raises(TerraformFailed) as failed:
        prepare_and_plan()
    assert "\n" not in str(failed.value)
    return str(failed.value)


def test_no_credentials(environment: dict[str, str], tmp_path: Path) -> None:
    without = {name: value for name, value in environment.items() if name not in tool.KEYS}
    line = failure(stack(tmp_path, without))
    assert line.startswith("cluster east: ")
    assert "No valid credential sources found" in line
    assert "give this shell credentials of the cloud" in line


def test_an_unavailable_provider(environment: dict[str, str], tmp_path: Path) -> None:
    wanted = {"required_providers": {"aws": {"source": "hashicorp/aws", "version": ">= 99.0.0"}}}
    line = failure(stack(tmp_path, environment, terraform=wanted))
    assert "no available releases match the given constraints >= 99.0.0" in line
    assert "or a mirror" in line


def test_a_provider_that_an_earlier_run_has_chosen(environment: dict[str, str], tmp_path: Path) -> None:
    """The changed fleet needs a newer provider than the one in the lock file of its state."""
    lock = tmp_path / "providers" / "aws.lock.hcl"
    replace(stack(tmp_path, environment), lock_file=lock).init()
    assert lock.exists()
    newer = {"required_providers": {"aws": {"source": "hashicorp/aws", "version": ">= 6.9.0, < 7.0.0"}}}
    folder = tmp_path / "written anew"
    folder.mkdir()
    line = failure(replace(stack(folder, environment, terraform=newer), lock_file=lock))
    own = folder / ".terraform.lock.hcl"
    assert line.endswith(f": delete {lock} and {own}: the next run chooses a version again")


def test_a_missing_state_bucket(environment: dict[str, str], tmp_path: Path) -> None:
    line = failure(stack(tmp_path, environment, terraform={"backend": {"s3": {**BACKEND, "bucket": "no-such-state"}}}))
    assert "create the state bucket with spotladder infra state" in line


def test_a_state_that_another_run_holds(environment: dict[str, str], tmp_path: Path) -> None:
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket="failing-state")
    lock = "fleet/east.tfstate.tflock"
    s3.put_object(Bucket="failing-state", Key=lock, Body=json.dumps(LOCK).encode())
    line = failure(stack(tmp_path, environment, terraform={"backend": {"s3": BACKEND}}))
    assert "the state is locked by ana@build-7 since 2026-11-22 18:03:11.531" in line
    assert line.endswith("force-unlock 11111111-2222-3333-4444-555555555555")
    s3.delete_object(Bucket="failing-state", Key=lock)
    s3.delete_bucket(Bucket="failing-state")
