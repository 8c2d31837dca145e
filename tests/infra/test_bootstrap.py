"""`bootstrap`, `plan` and `destroy` over a fleet, with a fake Terraform that fails on demand."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Answer, call
from tests.infra import tool
from tests.infra.contract import east
from tests.topology.builders import FLEET
from tests.topology.google import google_cloud
from tests.topology.programs import program

PROGRAM = """\
#!{python}
import json, pathlib, sys
here, command = pathlib.Path.cwd(), sys.argv[1]
with open(pathlib.Path({log!r}), "a") as log:
    print(here.name, *sys.argv[1:], file=log)
if command == "version":
    print("Terraform v1.11.4")
    sys.exit()
fails = json.loads(pathlib.Path({fails!r}).read_text())
if [here.name, command] in [entry[:2] for entry in fails]:
    summary, detail = next(entry[2:] for entry in fails if entry[:2] == [here.name, command])
    if command in ("plan", "apply"):
        entry = dict(severity="error", summary=summary, detail=detail, address="aws_eks_cluster.cluster")
        print(json.dumps(dict(type="diagnostic", diagnostic=entry)))
    else:
        print("Error: " + summary + "\\n\\n" + detail, file=sys.stderr)
    sys.exit(1)
resource = dict(addr="aws_eks_addon.coredns")
new = pathlib.Path({fails!r}).with_name(here.name + ".new")
adopted = pathlib.Path({fails!r}).with_name(here.name + ".adopted").exists()
addresses = ["aws_iam_role.node-role", "aws_s3_bucket.checkpoints", *([] if adopted else ["aws_eks_cluster.cluster"])]
if command == "plan":
    print(json.dumps(dict(type="planned_change", change=dict(resource=resource, action="create"))))
    if "aws_eks_cluster" in json.loads((here / "cdk.tf.json").read_text()).get("data", {{}}) and not adopted:
        resource = dict(addr="aws_eks_cluster.cluster")
        print(json.dumps(dict(type="planned_change", change=dict(resource=resource, action="delete"))))
    change = pathlib.Path({fails!r}).with_name(here.name + ".change")
    if change.exists():
        print(change.read_text())
    if pathlib.Path({fails!r}).with_name(here.name + ".moved").exists():
        for address in ("aws_s3_bucket.checkpoints", "aws_s3_bucket_policy.checkpoints-policy"):
            change = dict(resource=dict(addr=address), action="delete")
            print(json.dumps(dict(type="planned_change", change=change)))
elif command == "apply":
    new.unlink(missing_ok=True)
    print(json.dumps({{"type": "apply_complete", "@message": "aws_eks_addon.coredns: Creation complete after 7s"}}))
elif command == "output":
    found = dict(spotladder=dict(value={{**{outputs!r}, "cluster": here.name}}))
    print(json.dumps({{}} if new.exists() else found))
elif command == "state" and sys.argv[2] == "pull":
    found = [dict(zip(("type", "name"), address.split("."))) for address in addresses]
    instances = [dict(attributes=dict(id="an-id"))]
    print(json.dumps(dict(resources=[dict(entry, mode="managed", instances=instances) for entry in found])))
"""


@dataclass(frozen=True)
class BootstrapSite:
    folder: Path
    capsys: pytest.CaptureFixture[str]

    def fails(self, *entries: tuple[str, str, str, str]) -> None:
        (self.folder / "fails.json").write_text(json.dumps(entries))

    def run(self, *arguments: str) -> Answer:
        return call(self.capsys, "infra", *arguments)

    def calls(self, cluster: str) -> list[str]:
        """The commands that were run for a cluster."""
        lines = [line.split() for line in (self.folder / "log").read_text().splitlines()]
        return [" ".join(words[1:3]) if words[1] == "state" else words[1] for words in lines if words[0] == cluster]


@pytest.fixture
def world(
    emulator: str,
    stacks: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[BootstrapSite]:
    program = tmp_path / "terraform"
    log, fails = str(tmp_path / "log"), str(tmp_path / "fails.json")
    program.write_text(PROGRAM.format(python=sys.executable, log=log, fails=fails, outputs=east()))
    program.chmod(0o755)
    before, _, after = FLEET.partition("  - name: laptop\n")  # tests/kube/test_kind_clusters.py has kind clusters
    (tmp_path / "fleet.yaml").write_text(f"{before}  platform:{after.partition('  platform:')[2]}")
    for name, value in {**tool.KEYS, "AWS_ENDPOINT_URL": emulator, "SPOTLADDER_TERRAFORM": str(program)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    made = BootstrapSite(tmp_path, capsys)
    made.fails()
    with google_cloud(monkeypatch):
        yield made


def outputs(world: BootstrapSite) -> set[str]:
    return {path.stem for path in (world.folder / ".spotladder" / "outputs").glob("*.json")}


def test_a_fleet_is_created_one_after_the_other(world: BootstrapSite) -> None:
    done = world.run("bootstrap", "--yes")
    assert (done.code, done.err) == (0, "")
    assert "east: 1 to create" in done.out
    assert "east: aws_eks_addon.coredns: Creation complete after 7s" in done.out
    assert [line.split() for line in done.out.splitlines()[-3:]] == [
        ["east", "ready"],
        ["west", "ready"],
        ["alpha", "ready"],
    ]
    assert world.calls("east") == ["init", "plan", "apply", "output"]
    assert outputs(world) == {"east", "west", "alpha"}


def test_a_member_allows_the_addresses_of_the_home_cluster(world: BootstrapSite) -> None:
    """The home cluster is created first, and the plan of the member is made again with its addresses."""
    network = "    network: {cidr: 10.0.0.0/16}\n"
    text = (world.folder / "fleet.yaml").read_text().replace("home: east", "home: west")
    allowed = text.replace(network, f"{network}    api: {{allowed: [203.0.113.0/24]}}\n")
    (world.folder / "fleet.yaml").write_text(allowed)
    (world.folder / "west.new").touch()  # has no outputs until it is applied
    done = world.run("bootstrap", "--yes")
    assert done.code == 0, done.err
    assert done.out.index("west: aws_eks_addon.coredns: Cr") < done.out.index("east: aws_eks_addon.coredns: Cr")
    assert world.calls("east") == ["init", "plan", "init", "plan", "apply", "output"]
    variables = world.folder / "cdktf.out" / "stacks" / "east" / "home.auto.tfvars.json"
    assert json.loads(variables.read_text()) == {"home_egress": ["198.51.100.7/32"]}
    assert world.run("plan", "--cluster", "east").code == 0
    assert json.loads(variables.read_text()) == {"home_egress": ["198.51.100.7/32"]}, "written with the stack"
    recorded = world.folder / ".spotladder" / "outputs" / "west.json"
    recorded.write_text(recorded.read_text().replace("198.51.100.7", "192.0.2.1"))  # before another machine changed it
    assert world.run("plan", "--cluster", "east").code == 0
    assert json.loads(variables.read_text()) == {"home_egress": ["198.51.100.7/32"]}, "those of the state"
    (world.folder / "west.new").touch()  # another machine has deleted it
    assert world.run("plan", "--cluster", "east").code == 0
    assert json.loads(variables.read_text()) == {"home_egress": []}


def test_an_identity_that_would_be_locked_out_is_warned(world: BootstrapSite) -> None:
    network = "    network: {cidr: 10.0.0.0/16}\n"
    admins = f"{network}    api: {{admins: ['arn:aws:iam::000000000000:role/admins']}}\n"
    (world.folder / "fleet.yaml").write_text((world.folder / "fleet.yaml").read_text().replace(network, admins))
    done = world.run("bootstrap", "--yes", "--cluster", "east")
    assert done.code == 0
    assert "warning: cluster east: api.admins does not have arn:aws:" in done.err


def test_a_cluster_that_fails_is_named_and_the_others_are_created(world: BootstrapSite) -> None:
    world.fails(("west", "apply", "creating node pool", "googleapi: Error 403: Quota 'CPUS' exceeded"))
    done = world.run("bootstrap", "--yes")
    assert done.code == 5
    assert [line.split()[:2] for line in done.out.splitlines()[-3:]] == [
        ["east", "ready"],
        ["west", "failed"],
        ["alpha", "ready"],
    ]
    assert "failed with 3 resources in the state" in done.out
    assert done.err.splitlines()[0].startswith(
        "error: cluster west: aws_eks_cluster.cluster: creating node pool: googleapi: Error 403: Quota 'CPUS' exceeded"
    )
    assert outputs(world) == {"east", "alpha"}
    world.fails()
    assert world.run("bootstrap", "--yes").code == 0
    assert outputs(world) == {"east", "west", "alpha"}


def test_what_is_in_a_local_state_is_not_created_again(world: BootstrapSite) -> None:
    """The user has added spec.state to the fleet file after bootstrap, as its warning says."""
    local = world.folder / ".spotladder" / "east.tfstate"
    local.parent.mkdir()
    local.write_text(json.dumps({"version": 4, "resources": [{"mode": "managed", "type": "aws_vpc", "name": "vpc"}]}))
    terraform = f"terraform -chdir={world.folder / 'cdktf.out' / 'stacks' / 'east'}"
    for command in (("plan",), ("bootstrap", "--yes"), ("destroy", "--yes")):
        refused = world.run(*command, "--cluster", "east")
        assert refused.code == 5
        assert refused.err.splitlines()[-1] == (
            f"error: cluster east: its resources are in the local state {local}, not in s3://acme-state/fleet: move "
            f"them: {terraform} init -reconfigure && {terraform} state push {local} && mv {local} {local}.moved"
        )
    assert not {"plan", "apply"} & set(world.calls("east"))
    local.write_text(json.dumps({"version": 4, "resources": []}))  # of a deleted cluster
    assert world.run("bootstrap", "--yes", "--cluster", "east").code == 0


@pytest.mark.parametrize("own_state", [True, False])
def test_the_local_state_of_another_fleet_is_not_used(own_state: bool, world: BootstrapSite) -> None:
    """Two fleets in one folder with clusters of one name: one would change and delete the cluster of the other."""
    if not own_state:
        fleet = world.folder / "fleet.yaml"
        fleet.write_text(re.sub("  state: .*\n", "", fleet.read_text()))
    local = world.folder / ".spotladder" / "east.tfstate"
    local.parent.mkdir()
    tagged = {"attributes": {"tags_all": {"spotladder-fleet": "staging"}}}
    bucket = {"mode": "managed", "type": "aws_s3_bucket", "name": "checkpoints", "instances": [tagged]}
    rule = {"mode": "managed", "type": "aws_route", "name": "public-out", "instances": [{"attributes": {}}]}
    local.write_text(json.dumps({"version": 4, "resources": [bucket, rule]}))
    if not own_state:  # the bucket of a deleted fleet may be imported
        assert world.run("plan", "--cluster", "east").code == 0
    vpc = {"mode": "managed", "type": "aws_vpc", "name": "vpc", "instances": [tagged]}
    local.write_text(json.dumps({"version": 4, "resources": [bucket, rule, vpc]}))
    for command in (("plan",), ("bootstrap", "--yes"), ("destroy", "--yes")):
        refused = world.run(*command, "--cluster", "east")
        assert refused.code == 5
        assert refused.err.splitlines()[-1] == (
            f"error: cluster east: the resources in {local} belong to fleet staging, not to training: run this fleet "
            "in another folder, or with another --state"
        )


def test_a_plan_that_fails_creates_nothing(world: BootstrapSite) -> None:
    world.fails(("alpha", "plan", "No valid credential sources found", ""))
    assert world.run("bootstrap", "--yes").code == 5
    assert "apply" not in world.calls("east")


def test_plan_shows_the_costs_even_where_terraform_fails(world: BootstrapSite) -> None:
    planned = world.run("plan", "--cluster", "east")
    assert (planned.code, "apply" in world.calls("east")) == (0, False)
    assert "east: 1 to create" in planned.out
    world.fails(("east", "plan", "No valid credential sources found", ""))
    failed = world.run("plan", "--cluster", "east")
    assert failed.code == 5
    assert "USD/H IDLE" in failed.out
    data = json.loads(world.run("plan", "--offline", "--cluster", "east", "--output", "json").out)
    assert "changes" not in data


def test_without_a_terminal_bootstrap_and_destroy_are_refused(
    world: BootstrapSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for command in ("bootstrap", "destroy"):
        refused = world.run(command, "--cluster", "east")
        assert refused.code == 2
        assert "no terminal to confirm on" in refused.err
        assert "add --yes (with make: YES=yes)" in refused.err
    assert "apply" not in world.calls("east")
    assert "state rm" not in world.calls("east")


def test_destroy_keeps_the_checkpoints(world: BootstrapSite) -> None:
    done = world.run("destroy", "--yes", "--cluster", "east", "--skip-platform")
    assert (done.code, done.err) == (0, "")
    assert "east: bucket acme-east is kept, with its key" in done.out
    assert "east: 2 to delete" in done.out
    assert "east: no resources of the cluster are left in the account, except the checkpoint bucket\n" in done.out
    stack = world.folder / "cdktf.out" / "stacks" / "east"
    assert f"terraform -chdir={stack} import aws_s3_bucket.checkpoints an-id" in done.out
    assert world.calls("east")[-4:] == ["state pull", "state rm", "plan", "apply"]
    assert "east state rm -lock-timeout=10s aws_s3_bucket.checkpoints" in (world.folder / "log").read_text()


def test_a_cluster_that_does_not_answer_is_not_deleted(world: BootstrapSite) -> None:
    refused = world.run("destroy", "--yes", "--cluster", "east")
    assert refused.code == 5
    assert "--skip-platform" in refused.err
    assert "apply" not in world.calls("east")


def test_a_checkpoint_bucket_that_another_cluster_creates_now_is_not_deleted(world: BootstrapSite) -> None:
    """Terraform protects only what is in the stack, and a bucket is in that of the first cluster that uses it."""
    (world.folder / "east.moved").touch()
    refused = world.run("bootstrap", "--yes", "--cluster", "east")
    assert refused.code == 5
    addresses = "aws_s3_bucket.checkpoints aws_s3_bucket_policy.checkpoints-policy"
    assert refused.err == (
        "error: cluster east: this would delete the checkpoint bucket an-id or its key (aws_s3_bucket.checkpoints), "
        "which the fleet file no longer has in this cluster: correct the file, or keep them in the cloud without this "
        f"stack: terraform -chdir={world.folder / 'cdktf.out' / 'stacks' / 'east'} state rm {addresses}\n"
    )
    assert "apply" not in world.calls("east")
    file = world.folder / "fleet.yaml"
    unprotected = "{name: an-id, deletionProtection: false,"
    file.write_text(file.read_text().replace("{name: acme-east,", unprotected).replace("acme-east", "an-id"))
    assert world.run("bootstrap", "--yes", "--cluster", "east").code == 0


def test_a_protected_cluster_is_refused_before_anything_in_it_is_stopped(world: BootstrapSite) -> None:
    file = world.folder / "fleet.yaml"
    file.write_text(
        file.read_text().replace("    bucket: acme-east\n", "    bucket: acme-east\n    deletionProtection: true\n")
    )
    for options in ((), ("--skip-platform",)):
        refused = world.run("destroy", "--yes", "--cluster", "east", *options)
        assert refused.code == 5
        assert refused.err == (
            "error: cluster east: deletionProtection refuses its deletion: set it to false, and run spotladder infra "
            "bootstrap --cluster east first\n"
        )
    assert world.calls("east")[-1] == "state pull"


@pytest.mark.parametrize(
    ("address", "action", "reason", "code"),
    [
        ("aws_eks_cluster.cluster", "replace", "cannot_update", 5),
        ("aws_eks_cluster.cluster", "replace", "tainted", 0),  # Terraform was stopped while it created the cluster
        ("aws_subnet.private-us-east-1a", "replace", "cannot_update", 5),
        ("aws_subnet.private-us-east-1b", "delete", "delete_because_no_resource_config", 5),
        ("aws_subnet.public-us-east-1b", "delete", "delete_because_no_resource_config", 0),
    ],
)
def test_what_running_jobs_need_is_not_replaced(
    address: str, action: str, reason: str, code: int, world: BootstrapSite
) -> None:
    """By another key or other ranges: the jobs would end, and the nodes of Karpenter would stay without a cluster."""
    change = {"resource": {"addr": address}, "action": action, "reason": reason}
    (world.folder / "east.change").write_text(json.dumps({"type": "planned_change", "change": change}))
    refused = (
        f"error: cluster east: this would delete what its jobs need ({address}): undo the change in the fleet file, or "
        "run spotladder infra destroy --cluster east first\n"
    )
    for command in (("plan",), ("bootstrap", "--yes")):
        done = world.run(*command, "--cluster", "east")
        assert (done.code, done.err) == (code, refused if code else "")
    assert ("apply" in world.calls("east")) is not bool(code)


def east_exists(world: BootstrapSite) -> None:
    """Changes the fleet file so that east is an existing cluster."""
    network = "    network: {cidr: 10.0.0.0/16}\n"
    exists = "    existing: prod\n    network: {existing: {subnetTags: {tier: private}}}\n"
    (world.folder / "fleet.yaml").write_text((world.folder / "fleet.yaml").read_text().replace(network, exists))


@pytest.mark.parametrize("command", [("bootstrap", "--yes"), ("destroy", "--yes", "--skip-platform")], ids=" ".join)
def test_a_cluster_of_the_stack_is_not_deleted_as_an_existing_one(
    command: tuple[str, ...], world: BootstrapSite
) -> None:
    east_exists(world)
    refused = world.run(*command, "--cluster", "east")
    assert refused.code == 5
    assert "cluster east: existing names a cluster of yours" in refused.err
    assert "(aws_eks_cluster.cluster)" in refused.err
    assert "state rm" not in refused.err, "without the cluster in its state, the stack deletes its nodes and network"
    assert "apply" not in world.calls("east")
    assert "state rm" not in world.calls("east")


def test_an_existing_cluster_is_kept_and_its_platform_is_removed_first(world: BootstrapSite) -> None:
    east_exists(world)
    (world.folder / "east.adopted").touch()
    refused = world.run("destroy", "--yes", "--cluster", "east")
    assert refused.code == 5
    assert "east: the cluster prod and its network are kept" in refused.out
    assert "--skip-platform" in refused.err
    assert "apply" not in world.calls("east")
    assert world.run("destroy", "--yes", "--cluster", "east", "--skip-platform").code == 0


def test_the_removal_from_an_existing_cluster_can_only_be_repeated(
    world: BootstrapSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("helm", "kubectl"):
        program(world.folder, name, "exit 1")
    monkeypatch.setenv("PATH", str(world.folder), prepend=os.pathsep)
    failed = world.run("destroy", "--yes", "--cluster", "lab")
    assert failed.code == 5
    assert failed.err.splitlines()[1:] == [
        "error: cluster lab: not everything that a rollout installed is removed",
        "error: run the same command again to continue",
    ]


def test_clusters_that_exist_have_nothing_to_create(world: BootstrapSite) -> None:
    done = world.run("bootstrap", "--cluster", "lab")
    assert (done.code, done.out) == (0, "nothing to create: these clusters exist\n")


def test_outputs_are_read_without_terraform_after_a_bootstrap(world: BootstrapSite, fleet: Any) -> None:
    from spotladder.errors import EnvironmentFailure
    from spotladder_infra import terraform

    east, out, state = fleet.cluster("east"), Path("cdktf.out"), Path(".spotladder")
    assert terraform.outputs(fleet, east, out, state).cluster == "east"
    before = world.calls("east")
    assert terraform.outputs(fleet, east, out, state).node_identity == "node-profile-of-the-stack"
    assert world.calls("east") == before
    with pytest.raises(EnvironmentFailure, match="cluster lab: is not created here"):
        terraform.outputs(fleet, fleet.cluster("lab"), out, state)
