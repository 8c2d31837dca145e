"""`spotladder infra doctor`: programs of this machine, existing clusters, and the command itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spotladder.cli.main import main
from spotladder_infra.doctor import kube, machine
from spotladder_infra.doctor.result import CheckResult, Status, results
from spotladder_infra.terraform.tool import VARIABLE
from tests.topology.builders import FLEET, fleet_file
from tests.topology.programs import program

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
    program(folder, "terraform", 'echo "Terraform v1.12.1"')
    program(folder, "helm", 'echo "v4.0.1+gd80839c"')
    program(folder, "pulumi", 'echo "v3.250.0"')
    program(folder, "kind", 'echo "kind v0.30.0 go1.25.0 linux/amd64"')
    program(folder, "kubectl", KUBECTL)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(machine, "require", lambda *_: None)
    return folder


def of_machine(folder: Path) -> dict[str, tuple[Status, str]]:
    found = results(machine.checks(fleet_file(folder).fleet.spec.clusters))
    return {one.check: (one.status, one.found) for one in found if one.found != "installed"}


@pytest.mark.usefixtures("programs")
def test_a_machine_that_has_everything(tmp_path: Path) -> None:
    assert of_machine(tmp_path) == {
        "terraform or tofu": (Status.OK, "Terraform 1.12.1"),
        "kind": (Status.OK, "0.30.0"),
        "helm": (Status.OK, "4.0.1"),
        "kubectl": (Status.OK, "1.35.2"),
        "pulumi": (Status.OK, "3.250.0"),
    }


def test_programs_that_are_missing_old_or_broken(programs: Path, tmp_path: Path) -> None:
    (programs / "terraform").unlink()
    program(programs, "tofu", 'echo "OpenTofu v1.10.2"')
    (programs / "helm").unlink()
    program(programs, "pulumi", "exit 1")
    program(programs, "kubectl", 'echo "Client Version: v1.31.4"')
    found = of_machine(tmp_path)
    assert found["terraform or tofu"] == (Status.FAILED, f"{programs}/tofu is OpenTofu 1.10.2")
    assert found["helm"] == (Status.FAILED, "helm is not on the PATH")
    assert found["pulumi"] == (Status.FAILED, "does not print its version")
    assert found["kubectl"] == (Status.FAILED, "1.31.4 (needs 1.32 or newer)")


def of_cluster(folder: Path, *changes: tuple[str, str]) -> list[CheckResult]:
    fleet = fleet_file(folder, *changes).fleet
    return list(results(kube.checks(fleet, fleet.cluster("lab"), folder)))


@pytest.mark.usefixtures("programs")
def test_a_cluster_that_exists(tmp_path: Path) -> None:
    found = [(entry.check, entry.status, entry.found) for entry in of_cluster(tmp_path)]
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
    found = {entry.check: entry for entry in of_cluster(tmp_path, ("selectors: {gpu: a10g}", node_class))}
    result = found["node class of pool lab-gpu"]
    assert (result.status, result.found) == expected
    assert bool(result.fix) is (result.status is Status.FAILED)


def test_a_cluster_that_does_not_answer(programs: Path, tmp_path: Path) -> None:
    program(programs, "kubectl", 'echo "error: context \\"lab-admin\\" does not exist" >&2; exit 1')
    context, others = of_cluster(tmp_path)
    printed = 'kubectl get --raw: error: context "lab-admin" does not exist'
    assert (context.status, context.found) == (Status.FAILED, printed)
    assert (others.check, others.status) == ("all other checks", Status.SKIPPED)
    (programs / "kubectl").unlink()
    assert [entry.status for entry in of_cluster(tmp_path)] == [Status.SKIPPED, Status.SKIPPED]


def run(*arguments: str) -> int:
    return main(["infra", "doctor", *arguments])


def test_the_command(programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(LOCAL)
    assert run("--fleet", str(path), "--output", "json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"]
    assert printed["checks"][0] == {"status": "ok", "found": "4.0.1", "fix": "", "check": "helm", "scope": "machine"}
    (programs / "helm").unlink()
    assert run("--fleet", str(path)) == 5
    table = capsys.readouterr().out
    assert "install it (https://helm.sh/docs/intro/install)" in table
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
    assert skipped == [("clouds and clusters", "--offline")]
