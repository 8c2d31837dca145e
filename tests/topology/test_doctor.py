"""`spotladder infra doctor`: programs of this machine, existing clusters, and the command itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spotladder.cli.main import main
from spotladder_infra.doctor import kube, machine
from spotladder_infra.doctor.result import Demand, Status, compared
from spotladder_infra.terraform.tool import VARIABLE
from tests.topology.builders import FLEET, fleet_file

LOCAL = """\
apiVersion: spotladder.io/v1alpha1
kind: Fleet
metadata: {name: lab}
spec:
  home: lab
  clusters:
  - name: lab
    cloud: existing
    context: lab-admin
    pools:
    - {name: lab-heads, role: heads, selectors: {role: system}}
    - {name: lab-gpu, selectors: {gpu: a10g}, price: {perNodeHour: "1.006"}}
"""

KUBECTL = """\
case "$*" in
  *version*--client*) echo "Client Version: v1.35.2" ;;
  *lab-admin*/version) echo '{"major": "1", "minor": "35", "gitVersion": "v1.35.2"}' ;;
  *gpu=a10g*) ;;
  *"EC2NodeClass.karpenter.k8s.aws default"*) echo ec2nodeclass.karpenter.k8s.aws/default ;;
  *EC2NodeClass*) echo 'Error: "gpu" not found' >&2; exit 1 ;;
  *role=system*) echo node/a; echo node/b ;;
  *) echo "unexpected: $*" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with fakes of the programs, which print only their version."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder, "terraform", 'echo "Terraform v1.12.1"')
    program(folder, "helm", 'echo "v3.18.4+gd80839c"')
    program(folder, "pulumi", 'echo "v3.250.0"')
    program(folder, "node", 'echo "v24.1.0"')
    program(folder, "kind", 'echo "kind v0.30.0 go1.25.0 linux/amd64"')
    program(folder, "kubectl", KUBECTL)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(machine, "_installed", lambda _name: "1.0")
    return folder


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def of_machine(folder: Path) -> dict[str, tuple[Status, str]]:
    results = machine.examine(fleet_file(folder).fleet.spec.clusters, folder / "state")
    return {found.check: (found.status, found.found) for found in results if not found.check.startswith("package")}


@pytest.mark.usefixtures("programs")
def test_a_machine_that_has_everything(tmp_path: Path) -> None:
    assert of_machine(tmp_path) == {
        "terraform or tofu": (Status.OK, "Terraform 1.12.1"),
        "node": (Status.OK, "24.1.0"),
        "Terraform provider aws": (
            Status.OK,
            "none chosen yet: the first run takes the newest of >= 5.95.0, < 7.0.0",
        ),
        "Terraform provider google": (
            Status.OK,
            "none chosen yet: the first run takes the newest of >= 7.0.0, < 8.0.0",
        ),
        "kind": (Status.OK, "0.30.0"),
        "helm": (Status.OK, "3.18.4"),
        "kubectl": (Status.OK, "1.35.2"),
        "pulumi": (Status.OK, "3.250.0"),
    }


def test_programs_that_are_missing_old_or_broken(programs: Path, tmp_path: Path) -> None:
    (programs / "terraform").unlink()
    program(programs, "tofu", 'echo "OpenTofu v1.10.2"')
    (programs / "helm").unlink()
    program(programs, "pulumi", "exit 1")
    program(programs, "kubectl", 'echo "Client Version: v1.32.4"')
    found = of_machine(tmp_path)
    assert found["terraform or tofu"] == (Status.FAILED, f"{programs}/tofu is OpenTofu 1.10.2")
    assert found["helm"] == (Status.FAILED, "not found (needed for rollout)")
    assert found["pulumi"] == (Status.FAILED, f"{programs}/pulumi does not print its version")
    assert found["kubectl"] == (Status.WARNING, "1.32.4 (the cluster has 1.35)")


@pytest.mark.parametrize(
    ("version", "protected", "expected"),
    [
        ("5.100.0", False, (Status.OK, "5.100.0", "")),
        ("6.9.0", True, (Status.OK, "6.9.0", "")),
        ("5.100.0", True, (Status.FAILED, "5.100.0; cluster east needs >= 6.9.0, < 7.0.0", "delete {lock}")),
        ("7.0.1", False, (Status.FAILED, "7.0.1; cluster east needs >= 5.95.0, < 7.0.0", "delete {lock}")),
    ],
)
def test_a_provider_that_an_earlier_run_has_chosen(
    version: str, protected: bool, expected: tuple[Status, str, str], tmp_path: Path
) -> None:
    """The lock file of Terraform 1.11; OpenTofu writes the same with the name of its own registry."""
    lock = tmp_path / "providers" / "aws.lock.hcl"
    lock.parent.mkdir()
    registry = "registry.opentofu.org" if protected else "registry.terraform.io"
    lock.write_text(
        f"""\
# This file is maintained automatically by "terraform init".
# Manual edits may be lost in future updates.

provider "{registry}/hashicorp/aws" {{
  version     = "{version}"
  constraints = ">= 5.95.0, < 7.0.0"
  hashes = [
    "h1:edXOJWE4ORX8Fm+dpVpICzMZJat4AX0VRCAy/xkcOc0=",
  ]
}}
"""
    )
    changes = (
        [("    bucket: acme-east\n", "    bucket: acme-east\n    deletionProtection: true\n")] if protected else []
    )
    clusters = [fleet_file(tmp_path, *changes).fleet.cluster("east")]
    (found,) = machine.chosen_providers(clusters, tmp_path)
    status, text, fix = expected
    assert (found.status, found.found) == (status, text)
    assert found.fix.startswith(fix.format(lock=lock))


def test_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_installed", {"boto3": "1.44.5"}.get)
    assert machine.package("boto3").status is Status.OK
    missing = {name: machine.package(name).fix for name in ("google-auth", "pulumi")}
    assert missing == {"google-auth": "pip install 'spotladder[gcp]'", "pulumi": "pip install 'spotladder[infra]'"}


@pytest.mark.usefixtures("programs")
def test_a_cluster_that_exists(tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path).fleet
    found = [(entry.check, entry.status, entry.found) for entry in kube.examine(fleet, fleet.cluster("lab"), tmp_path)]
    assert found == [
        ("context lab-admin", Status.OK, "Kubernetes v1.35.2"),
        ("nodes of pool lab-heads", Status.OK, "2 with role=system"),
        ("nodes of pool lab-gpu", Status.WARNING, "no node has gpu=a10g"),
    ]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("default", (Status.OK, "EC2NodeClass default")),
        ("gpu", (Status.FAILED, 'kubectl get EC2NodeClass.karpenter.k8s.aws: Error: "gpu" not found')),
    ],
)
def test_the_node_class_of_a_pool_in_a_cluster_that_exists(
    name: str, expected: tuple[Status, str], tmp_path: Path
) -> None:
    node_class = f"nodeClass: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: {name}}}"
    fleet = fleet_file(tmp_path, ("selectors: {gpu: a10g}", node_class)).fleet
    found = {entry.check: entry for entry in kube.examine(fleet, fleet.cluster("lab"), tmp_path)}
    result = found["node class of pool lab-gpu"]
    assert (result.status, result.found) == expected
    assert bool(result.fix) is (result.status is Status.FAILED)


def test_a_cluster_that_does_not_answer(programs: Path, tmp_path: Path) -> None:
    program(programs, "kubectl", 'echo "error: context \\"lab-admin\\" does not exist" >&2; exit 1')
    fleet = fleet_file(tmp_path).fleet
    (found,) = kube.examine(fleet, fleet.cluster("lab"), tmp_path)
    assert (found.status, found.found) == (
        Status.FAILED,
        'kubectl get --raw: error: context "lab-admin" does not exist',
    )
    (programs / "kubectl").unlink()
    (found,) = kube.examine(fleet, fleet.cluster("lab"), tmp_path)
    assert (found.status, found.found) == (Status.SKIPPED, "kubectl is not installed")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (None, (Status.SKIPPED, "kind cluster laptop", "kind is not installed", "")),
        (
            "exit 0",
            (
                Status.SKIPPED,
                "kind cluster laptop",
                "does not exist yet",
                "spotladder infra bootstrap --cluster laptop creates it",
            ),
        ),
        (
            'echo "ERROR: failed to list clusters" >&2; exit 1',
            (
                Status.FAILED,
                "kind cluster laptop",
                "kind get clusters: ERROR: failed to list clusters",
                "does Docker run?",
            ),
        ),
        (
            "echo laptop",
            (
                Status.FAILED,
                "context kind-laptop",
                "kubectl get --raw: unexpected: --context kind-laptop get --raw /version",
                "kubectl --context kind-laptop version",
            ),
        ),
    ],
)
def test_a_kind_cluster_is_created_by_bootstrap(
    kind: str | None, expected: tuple[Status, str, str, str], programs: Path, tmp_path: Path
) -> None:
    if kind is None:
        (programs / "kind").unlink()
    else:
        program(programs, "kind", kind)
    fleet = fleet_file(tmp_path).fleet
    (found,) = kube.examine(fleet, fleet.cluster("laptop"), tmp_path)
    assert (found.status, found.check, found.found, found.fix) == expected


@pytest.mark.parametrize(
    ("limit", "status"), [(0, Status.FAILED), (3, Status.FAILED), (4, Status.WARNING), (64, Status.OK)]
)
def test_a_quota_beside_a_demand(limit: float, status: Status) -> None:
    assert compared("aws us-east-1", "vCPUs", limit, Demand(4, 60) + Demand(2, 4), how="request it").status is status


def run(*arguments: str) -> int:
    return main(["infra", "doctor", *arguments])


def test_the_command(programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(LOCAL)
    assert run("--fleet", str(path), "--output", "json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"]
    assert printed["checks"][0] == {"scope": "machine", "check": "helm", "status": "ok", "found": "3.18.4", "fix": ""}
    (programs / "helm").unlink()
    assert run("--fleet", str(path)) == 5
    table = capsys.readouterr().out
    assert "install it: https://helm.sh/docs/intro/install" in table
    assert table.splitlines()[-1] == "5 ok, 1 warning, 1 failed"
    path.write_text(LOCAL.replace("home: lab", "home: lap"))
    assert run("--fleet", str(path)) == 2


@pytest.mark.usefixtures("programs")
def test_offline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    run("--fleet", str(path), "--offline", "--output", "json")
    checks = json.loads(capsys.readouterr().out)["checks"]
    skipped = [(entry["scope"], entry["found"]) for entry in checks if entry["status"] == "skipped"]
    assert skipped == [(name, "--offline") for name in ("aws", "gcp", "lab", "laptop")]
