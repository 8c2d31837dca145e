"""The life of an EKS cluster on an emulator of AWS, with the commands of the documentation and the real Terraform.

One test in several steps, since each apply takes about a minute. Commands come from docs/eks.md and docs/destroy.md, as
their readers type them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest

from spotladder_infra import outputs, terraform
from spotladder_infra.terraform.applied import stacks_of
from spotladder_infra.terraform.providers import lock_file
from spotladder_infra.terraform.tool import VARIABLE
from spotladder_infra.topology.cluster import Cloud
from spotladder_infra.topology.read import read_fleet
from tests.absent import absent
from tests.docs.markdown import ROOT, commands
from tests.infra import tool
from tests.topology.builders import TODAY

REGION = "us-east-1"
FLEET = Path("examples/fleet/eks.yaml")
OUT, STATE = Path("cdktf.out"), Path(".spotladder")
ADDONS = (
    "    zones:",
    (
        "    addons: {vpc-cni: v1.20.4-eksbuild.1, kube-proxy: v1.35.0-eksbuild.2, coredns: v1.12.4-eksbuild.1,\n"
        "      eks-pod-identity-agent: v1.3.9-eksbuild.3}\n    imageRepository: true\n    zones:"
    ),
)
"""The emulator cannot list the versions of add-ons. The repository is an option of the stack."""

CREATE, DELETE = commands(ROOT / "docs/eks.md"), commands(ROOT / "docs/destroy.md")
KEPT = ("s3_bucket.checkpoints", "kms_key.checkpoints-key", "kms_alias.checkpoints-key-alias")

pytestmark = pytest.mark.timeout(900)


def command(page: list[str], target: str) -> str:
    """The first command of a page for a target of make."""
    return next(line for line in page if line.split()[:2] == ["make", target])


@dataclass(frozen=True)
class Shell:
    """A copy of a user's checkout, in which commands run as they are typed."""

    folder: Path
    environment: dict[str, str]

    def fleet(self, *changes: tuple[str, str]) -> None:
        text = (ROOT / FLEET).read_text()
        for old, new in (ADDONS, *changes):
            assert old in text
            text = text.replace(old, new, 1)
        (self.folder / FLEET).write_text(text)

    def start(self, line: str) -> subprocess.Popen[str]:
        words = shlex.split(line)
        if words[0] == "make":  # what is installed stays as it is
            words[1:1] = ["--old-file=.venv/.setup", "--old-file=.venv/.setup-infra"]
            words.append("SKIP_PLATFORM=yes")  # the emulator has no API server
        return subprocess.Popen(
            words,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, line: str, *, fails: int = 0) -> str:
        """Both streams of a command that ends with this code. make itself ends with 2 when a command fails."""
        began = time.monotonic()
        running = self.start(line)
        out, err = running.communicate(timeout=400)
        print(f"{line}: {running.returncode} after {time.monotonic() - began:.0f} s")
        assert running.returncode == (2 if fails and line.startswith("make") else fails), f"{line}\n{out}\n{err}"
        assert not fails or f"Error {fails}" in err or not line.startswith("make")
        return out + err


@pytest.fixture
def shell(emulator: str, stacks: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    found = tool.binary()
    if found is None:
        absent("neither terraform nor tofu is on the PATH", "infra")
    if not os.environ.get("SPOTLADDER_TERRAFORM_PLUGINS"):
        absent("the AWS provider is not available (SPOTLADDER_TERRAFORM_PLUGINS)", "infra")
    for name, value in {**tool.environment(tmp_path), "AWS_ENDPOINT_URL": emulator, "MAKEFLAGS": ""}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MAKELEVEL", raising=False)  # a make below another one prints the folders that it enters
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / "examples" / "fleet", folder / "examples" / "fleet")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    stack = folder / OUT / "stacks" / "east"
    stack.mkdir(parents=True)
    # The emulator has no DNS names for buckets.
    state = {"bucket": "acme-terraform-state", "key": "spotladder/first/east.tfstate", "region": REGION}
    s3 = {**state, "use_path_style": True, "use_lockfile": True, "encrypt": True}
    override = {"terraform": {"backend": {"s3": s3}}, "provider": {"aws": {"s3_use_path_style": True}}}
    (stack / "emulator_override.tf.json").write_text(json.dumps(override))
    monkeypatch.chdir(folder)
    made = Shell(folder, dict(os.environ))
    made.fleet()
    return made


def test_the_page_has_the_settings_of_the_tests(tmp_path: Path) -> None:
    """What docs/eks.md shows for an emulator is what the tests of this file run with."""
    page = (ROOT / "docs/eks.md").read_text()
    shown = dict(
        re.findall(r"\b([A-Z][A-Z0-9_]+)=(\S+)", page[page.index("## Try it without") : page.index("## Members")])
    )
    used = {**tool.settings(int(shown["GATEWAY_PORT"])), **tool.KEYS, "AWS_EC2_METADATA_DISABLED": "true"}
    assert {name: shown[name] for name in used} == used
    assert shown["AWS_ENDPOINT_URL"] == f"http://{shown['BIND_HOST']}:{shown['GATEWAY_PORT']}"
    tool.for_emulator(tmp_path)
    override = json.loads((tmp_path / "emulator_override.tf.json").read_text())
    assert json.dumps(override, sort_keys=True) in page
    assert "tests/infra/ministack_server.py" in page
    assert "SKIP_PLATFORM" in (ROOT / "Makefile").read_text()


def client(service: str) -> Any:
    return boto3.client(service, region_name=REGION)


def test_life(shell: Shell, emulator: str) -> None:
    before = tool.leftovers(emulator, REGION)
    for line in CREATE[: CREATE.index(command(CREATE, "bootstrap"))]:
        said = shell.run(line)
    assert "to create" in said

    # The error for a role that exists has the command that imports it. The same command then continues.
    client("iam").create_role(RoleName="east-node", AssumeRolePolicyDocument="{}")
    refused = shell.run(command(CREATE, "bootstrap"), fails=5)
    (exists,) = re.findall("if it belongs to this cluster: (.*); otherwise", refused)
    shell.run(exists)
    said = shell.run(command(CREATE, "bootstrap"))
    assert "east: Apply complete!" in said
    for line in CREATE[CREATE.index(command(CREATE, "bootstrap")) + 1 :]:
        said = shell.run(line)
    assert json.loads(Path(said.strip()).read_text())["current-context"] == "east"
    assert "east: no change" in shell.run(command(CREATE, "plan"))
    found = read_fleet(FLEET, TODAY).fleet
    read = terraform.outputs(found, found.cluster("east"), OUT, STATE)
    assert (read.cluster, read.checkpoints) == ("east", "s3://acme-checkpoints")
    assert set(read.identities.training) == {"vision"}
    assert read.network is not None
    assert read.network.network in {entry["VpcId"] for entry in client("ec2").describe_vpcs()["Vpcs"]}
    stack = stacks_of(found, [found.cluster("east")], OUT, STATE)[0]
    assert outputs.read(stack.output(), "east") == read
    assert len(stack.ids()) > 70

    # A minor version of Kubernetes changes the control plane and the system nodes, and replaces neither.
    shell.fleet(("    pools:\n", '    kubernetes: "1.36"\n    pools:\n'))
    assert changes(shell) == {"aws_eks_cluster.cluster": "update", "aws_eks_node_group.system": "update"}

    # A pool of workers belongs to the layer above: it changes no cloud resource. The system nodes do.
    shell.fleet(
        ("limits: {nodes: 16}", "limits: {nodes: 32}"), ("    pools:\n", "    system: {count: 3}\n    pools:\n")
    )
    assert changes(shell) == {"aws_eks_node_group.system": "update"}

    imports = nodes_and_leftovers(shell, emulator)
    assert left(before, emulator) == {"buckets": {"acme-checkpoints", "acme-terraform-state"}}

    # The next cluster uses the kept bucket with its key; on request, the bucket is deleted.
    shell.run(command(CREATE, "plan"))
    for line in imports:
        shell.run(line)
    again = changes(shell)
    assert not {f"aws_{name}" for name in KEPT} & {name for name, action in again.items() if action != "update"}
    assert again["aws_eks_cluster.cluster"] == "create"
    client("s3").put_object(Bucket="acme-checkpoints", Key="vision/job/commit", Body=b"x")
    shell.run(DELETE[-1])
    assert left(before, emulator) == {"buckets": {"acme-terraform-state"}}


def test_the_same_commands_with_opentofu(shell: Shell, emulator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is chosen as users choose it. OpenTofu may be absent: CONTRIBUTING.md shows how to build it."""
    program = shutil.which("tofu")
    if program is None:
        absent("tofu is not on the PATH", "opentofu", in_all=False)
    monkeypatch.setenv(VARIABLE, program)
    shell.environment[VARIABLE] = program
    bootstrap = CREATE.index(command(CREATE, "bootstrap"))
    shell.run(command(CREATE, "state"))
    before = tool.leftovers(emulator, REGION)
    for line in CREATE[: bootstrap + 1]:
        shell.run(line)
    lock = lock_file(Cloud.AWS, STATE).read_text()
    assert 'provider "registry.opentofu.org/hashicorp/aws"' in lock
    assert "east: no change" in shell.run(command(CREATE, "plan"))

    shell.fleet(("    pools:\n", "    system: {count: 3}\n    pools:\n"))
    assert changes(shell) == {"aws_eks_node_group.system": "update"}

    shell.run(DELETE[-1])
    assert left(before, emulator) == {}


def changes(shell: Shell) -> dict[str, str]:
    """The actions of a plan by address."""
    said = shell.run(f".venv/bin/spotladder infra plan --fleet {FLEET} --output json")
    return {entry["address"]: entry["action"] for entry in json.JSONDecoder().raw_decode(said)[0]["changes"]["east"]}


def left(before: dict[str, list[str]], emulator: str) -> dict[str, set[str]]:
    """The resources that the account has in addition to the earlier ones."""
    now = tool.leftovers(emulator, REGION)
    found = {kind: set(names) - set(before.get(kind, [])) for kind, names in now.items()}
    return {kind: names for kind, names in found.items() if names}


def kill_in_the_middle(shell: Shell, line: str, met: Callable[[], bool]) -> str:
    """SIGKILL for the command as soon as the condition is met. Terraform and its providers end with it.

    Returns what the command has printed.
    """
    running = shell.start(line)
    deadline = time.monotonic() + 180
    while not met():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    below = psutil.Process(running.pid).children(recursive=True)
    assert any("terraform" in process.name() for process in below)
    running.kill()
    out, err = running.communicate()
    _, alive = psutil.wait_procs(below, timeout=20)
    assert not alive
    return out + err


def nodes_and_leftovers(shell: Shell, emulator: str) -> list[str]:
    """A node of Karpenter prevents the start of `destroy`. After a kill halfway and the release of the state's lock,
    the same command continues. A remaining volume makes the command fail, and the error names it.

    Returns the commands that import the kept bucket.
    """
    ec2 = client("ec2")
    owned = {"Key": "kubernetes.io/cluster/east", "Value": "owned"}
    node = ec2.run_instances(
        ImageId="ami-12345678",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [owned, {"Key": "karpenter.sh/nodepool", "Value": "g5-spot"}]}
        ],
    )["Instances"][0]["InstanceId"]
    refused = shell.run(command(DELETE, "destroy"), fails=5)
    assert f"cluster east: 1 nodes that Karpenter launched still run ({node})" in refused
    ec2.terminate_instances(InstanceIds=[node])
    destroy = f".venv/bin/spotladder infra destroy --fleet {FLEET} --yes --skip-platform"
    said = kill_in_the_middle(shell, destroy, lambda: "rules" not in tool.leftovers(emulator, REGION))
    assert "bucket acme-checkpoints is kept, with its key" in said
    imports = [line for line in said.splitlines() if " import aws_" in line]
    assert {line.split()[3] for line in imports} == {f"aws_{name}" for name in KEPT}
    assert "vpcs" in tool.leftovers(emulator, REGION)
    volume = ec2.create_volume(
        AvailabilityZone="us-east-1a", Size=1, TagSpecifications=[{"ResourceType": "volume", "Tags": [owned]}]
    )["VolumeId"]
    locked = shell.run(command(DELETE, "destroy"), fails=5)
    (unlock,) = re.findall("if it no longer runs: (.*force-unlock) (.*)", locked)
    shell.run(f"{unlock[0]} -force {unlock[1]}")
    said = shell.run(command(DELETE, "destroy"), fails=5)
    assert volume in said
    assert "cluster east: 1 resources are left in the account" in said
    ec2.delete_volume(VolumeId=volume)
    shell.run(command(DELETE, "destroy"))
    return imports
