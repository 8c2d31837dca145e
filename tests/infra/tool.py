"""Terraform (or OpenTofu) on synthesized stacks, and an emulator of AWS, for tests.

Providers come from `SPOTLADDER_TERRAFORM_PLUGINS`, a folder laid out as a filesystem mirror, or by the user's own CLI
configuration. Nothing connects to a cloud: the environment has only the credentials of the emulator.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotladder_infra.watchdog import watched
from tests.ports import free_port

ACCOUNT = "000000000000"
TIMEOUT = 500.0
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@dataclass(frozen=True)
class Terraform:
    """Runs in one stack's folder."""

    binary: str
    folder: Path
    environment: Mapping[str, str]

    def run(self, *arguments: str, accept: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
        """One command; fails the test with its output when the exit code is not one of `accept`."""
        done = subprocess.run(
            [self.binary, *arguments],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode in accept, (
            f"{arguments}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}"
        )
        return done

    def plan(self, *arguments: str) -> dict[str, list[str]]:
        """The actions of a plan by address, without unchanged resources."""
        self.run("plan", "-input=false", "-no-color", "-out=tfplan", *arguments)
        plan = json.loads(self.run("show", "-json", "tfplan").stdout)
        changes = {change["address"]: change["change"]["actions"] for change in plan.get("resource_changes", [])}
        return {address: actions for address, actions in changes.items() if actions not in (["no-op"], ["read"])}

    def addresses(self) -> list[str]:
        """The addresses of the resources in the state."""
        return self.run("state", "list").stdout.split()


def binary() -> str | None:
    """The program that SPOTLADDER_TERRAFORM names, or Terraform, or OpenTofu."""
    if named := os.environ.get("SPOTLADDER_TERRAFORM"):
        return shutil.which(named)
    return shutil.which("terraform") or shutil.which("tofu")


def environment(scratch: Path) -> dict[str, str]:
    """Providers from a mirror, no credentials of the user's, no telemetry."""
    found = {
        "CHECKPOINT_DISABLE": "1",
        "TF_IN_AUTOMATION": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(scratch / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(scratch / "none"),
        **KEYS,
    }
    if mirror := os.environ.get("SPOTLADDER_TERRAFORM_PLUGINS"):
        folders = (mirror, _for_tofu(mirror, scratch))
        mirrors = "".join(f'  filesystem_mirror {{ path = "{path}" }}\n' for path in folders)
        configuration = scratch / "terraformrc"
        configuration.write_text(f"provider_installation {{\n{mirrors}}}\n")
        found["TF_CLI_CONFIG_FILE"] = str(configuration)
    return found


def _for_tofu(mirror: str, scratch: Path) -> Path:
    """The same providers under the name of OpenTofu's registry. It follows links to the folders of platforms only."""
    found = scratch / "mirror"
    known = Path(mirror).absolute() / "registry.terraform.io"
    for platform in known.glob("*/*/*/*"):
        link = found / "registry.opentofu.org" / platform.relative_to(known)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(platform)
    return found


def for_emulator(folder: Path) -> None:
    """Overrides for a stack: state beside it, and buckets by path, since the emulator has no names for them."""
    (folder / "emulator_override.tf.json").write_text(
        json.dumps(
            {
                "terraform": {"backend": {"local": {"path": "emulator.tfstate"}}},
                "provider": {"aws": {"s3_use_path_style": True}},
            }
        )
    )


def ministack() -> list[str] | None:
    """The command that starts the emulator, in an environment beside this one: it needs other versions of boto3."""
    own = Path(sys.executable).parents[1]
    beside = own.with_name(f"{own.name}-emulator") / "bin" / "python"
    return [str(beside), str(Path(__file__).with_name("ministack_server.py"))] if beside.exists() else None


def settings(port: int) -> dict[str, str]:
    """The environment of the emulator."""
    return {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_AUTOCREATE_AWS_MANAGED": "1",
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
    }


@contextmanager
def emulator(command: list[str], scratch: Path) -> Iterator[str]:
    """The emulator's URL. The emulator ends after the block, and when this process ends in any way."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with watched() as run, (scratch / "emulator.log").open("w") as log:
        process = subprocess.Popen(
            command,
            env={**os.environ, **settings(port), **run.environment},
            cwd=scratch,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _await(url, process, scratch / "emulator.log")
            yield url
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the emulator ended:\n{log.read_text()[-3000:]}"
        try:
            with urllib.request.urlopen(f"{url}/_ministack/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"the emulator does not answer:\n{log.read_text()[-3000:]}")


def leftovers(url: str, region: str) -> dict[str, list[str]]:
    """The remaining resources of a stack in the emulator, by kind."""
    import boto3

    def client(service: str) -> Any:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        return boto3.client(service, endpoint_url=url, region_name=region, **keys)

    ec2, iam = client("ec2"), client("iam")
    found = {
        "vpcs": [entry["VpcId"] for entry in ec2.describe_vpcs()["Vpcs"] if not entry.get("IsDefault")],
        "gateways": [
            entry["NatGatewayId"]
            for entry in ec2.describe_nat_gateways()["NatGateways"]
            if entry["State"] not in ("deleted", "deleting")
        ],
        "addresses": [entry["AllocationId"] for entry in ec2.describe_addresses()["Addresses"]],
        "templates": [entry["LaunchTemplateId"] for entry in ec2.describe_launch_templates()["LaunchTemplates"]],
        "clusters": client("eks").list_clusters()["clusters"],
        "roles": [
            entry["RoleName"]
            for entry in iam.list_roles()["Roles"]
            if not entry["Path"].startswith(("/aws-service-role/", "/service-role/"))
        ],
        "profiles": [entry["InstanceProfileName"] for entry in iam.list_instance_profiles()["InstanceProfiles"]],
        "queues": client("sqs").list_queues().get("QueueUrls", []),
        "rules": [entry["Name"] for entry in client("events").list_rules()["Rules"]],
        "buckets": [entry["Name"] for entry in client("s3").list_buckets()["Buckets"]],
        "logs": [entry["logGroupName"] for entry in client("logs").describe_log_groups()["logGroups"]],
    }
    return {kind: names for kind, names in found.items() if names}
