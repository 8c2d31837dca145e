"""The commands of a stack, with a program in Terraform's place: what it is called with, and how it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from spotladder_infra.terraform.events import Action, Planned
from spotladder_infra.terraform.stack import TerraformFailed, TerraformStack
from spotladder_infra.terraform.tool import Tool
from tests.waiting import until

PROGRAM = """\
#!{python}
import json, pathlib, signal, sys, time
here = pathlib.Path.cwd()
stopped = []
signal.signal(signal.SIGINT, lambda *_: stopped.append(1))
with open(here / "calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
answers = json.loads((here / "answers.json").read_text())
code, lines, wait = answers.get(sys.argv[1], [0, [], False])
for line in lines:
    print(line, flush=True)
if wait:
    print("ready", flush=True)
    while not stopped or wait == "endlessly":
        time.sleep(0.02)
    print("stopped", flush=True)
    sys.exit(1)
sys.exit(code)
"""


def hook(kind: str, address: str) -> str:
    entry = {"resource": {"addr": address}, "action": "create", "elapsed_seconds": 1}
    return json.dumps({"@message": kind, "type": kind, "hook" if kind.startswith("apply") else "change": entry})


def stack(folder: Path, **answers: object) -> TerraformStack:
    program = folder / "terraform"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    (folder / "answers.json").write_text(json.dumps(answers))
    return TerraformStack(Tool(str(program), "Terraform", "1.11.4"), folder, "east", dict(os.environ))


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_plan_and_apply(tmp_path: Path) -> None:
    lines = [hook("planned_change", "aws_vpc.vpc"), "not json", hook("planned_change", "aws_eip.nat")]
    done = [hook("apply_start", "aws_vpc.vpc"), hook("apply_complete", "aws_vpc.vpc")]
    made = stack(tmp_path, plan=[0, lines, False], apply=[0, done, False])
    assert made.plan() == [Planned("aws_vpc.vpc", Action.CREATE), Planned("aws_eip.nat", Action.CREATE)]
    (tmp_path / "tfplan").touch()
    seen: list[str] = []
    made.apply(seen.append)
    assert seen == ["apply_start", "apply_complete"]
    assert not (tmp_path / "tfplan").exists()
    made.plan(destroy=True)
    assert calls(tmp_path) == [
        "plan -json -input=false -out=tfplan -lock-timeout=10s",
        "apply -json -input=false -lock-timeout=10s tfplan",
        "plan -json -input=false -out=tfplan -lock-timeout=10s -destroy",
    ]


def test_a_failure_without_an_error_names_the_program(tmp_path: Path) -> None:
    made = stack(tmp_path, plan=[3, [], False])
    with pytest.raises(TerraformFailed, match="cluster east: Terraform plan failed: exit code 3"):
        made.plan()


def test_an_object_that_exists_is_an_error_with_its_import(tmp_path: Path) -> None:
    entry = {"severity": "error", "summary": "creating IAM Role", "address": "aws_iam_role.node-role"}
    exists = json.dumps({"type": "diagnostic", "diagnostic": {**entry, "detail": "EntityAlreadyExists: x"}})
    made = stack(tmp_path, apply=[1, [exists, "noise"], False])
    roles = {"aws_iam_role": {"node-role": {"name": "east-node"}}}
    (tmp_path / "cdk.tf.json").write_text(json.dumps({"provider": {"aws": [{}]}, "resource": roles}))
    with pytest.raises(TerraformFailed) as failed:
        made.apply()
    assert f"terraform -chdir={tmp_path} import aws_iam_role.node-role east-node; otherwise" in str(failed.value)
    assert failed.value.exit_code == 5


def test_commands_are_quoted_for_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / "my fleet"
    folder.mkdir()
    assert stack(folder).command("import", "aws_s3_bucket.a", "a") == (
        f"terraform '-chdir={folder}' import aws_s3_bucket.a a"
    )


def test_an_entry_of_an_existing_cluster_is_imported_by_the_name_of_the_cluster(tmp_path: Path) -> None:
    made = stack(tmp_path)
    entry = {"aws_eks_access_entry": {"member-0": {"cluster_name": "${data.aws_eks_cluster.cluster.name}"}}}
    found = {"data": {"aws_eks_cluster": {"cluster": {"name": "prod_1"}}}, "resource": entry, "provider": {"aws": [{}]}}
    (tmp_path / "cdk.tf.json").write_text(json.dumps(found))
    assert made.import_command("aws_eks_access_entry.member-0").endswith(" prod_1:PRINCIPAL_ARN")


def test_the_ids_of_the_state(tmp_path: Path) -> None:
    vpc = {"mode": "managed", "type": "aws_vpc", "name": "vpc", "instances": [{"attributes": {"id": "vpc-1"}}]}
    state = {"resources": [vpc, {**vpc, "mode": "data"}, {**vpc, "name": "gone", "instances": []}]}
    assert stack(tmp_path, state=[0, [json.dumps(state)], False]).ids() == {"aws_vpc.vpc": "vpc-1"}


def test_the_versions_of_providers_are_shared(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    lock = tmp_path / "state" / "aws.lock.hcl"
    for folder in (first, second):
        folder.mkdir()
        made = stack(folder)
        made = TerraformStack(made.tool, folder, "east", made.environment, lock_file=lock)
        if folder == first:
            (folder / ".terraform.lock.hcl").write_text("versions")
        made.init()
    assert (second / ".terraform.lock.hcl").read_text() == lock.read_text() == "versions"


def test_without_both_copies_of_the_versions_others_are_chosen(tmp_path: Path) -> None:
    lock, own = tmp_path / "aws.lock.hcl", tmp_path / ".terraform.lock.hcl"
    lock.write_text("version 5")
    made = replace(stack(tmp_path, init=[1, ["Error: Inconsistent dependency lock file"], False]), lock_file=lock)
    with pytest.raises(TerraformFailed, match=f": delete {lock} and {own}: the next run chooses a version again$"):
        made.init()
    assert own.read_text() == "version 5", "it would be used again, and copied to the other one"


RUNNER = """\
import pathlib, sys
sys.path.insert(0, {root!r})
from tests.terraform.test_stack import *
import os
from spotladder_infra.terraform.stack import TerraformInterrupted
folder = pathlib.Path({folder!r})
made = TerraformStack(Tool(str(folder / "terraform"), "Terraform", "1"), folder, "east", dict(os.environ),
             on_interrupt=lambda: print("asked", flush=True))
try:
    made.apply()
except TerraformInterrupted as error:
    print("interrupted:", error, flush=True)
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize(("waits", "killed"), [("until asked", False), ("endlessly", True)])
def test_ctrl_c_stops_it_and_the_second_one_kills_it(waits: str, killed: bool, tmp_path: Path) -> None:
    stack(tmp_path, apply=[0, [], waits])
    root = str(Path(__file__).parents[2])
    runner = textwrap.dedent(RUNNER.format(root=root, folder=str(tmp_path)))
    with subprocess.Popen([sys.executable, "-c", runner], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            until(lambda: running.poll() is not None or ((tmp_path / "calls").exists() and calls(tmp_path)))
            running.send_signal(signal.SIGINT)
            assert running.stdout.readline() == "asked\n"
            if killed:
                running.send_signal(signal.SIGINT)
            rest = running.stdout.read()
            assert running.wait(600) == 130
        finally:
            running.kill()  # its watchdog ends the program
    assert ("before it could write its state" in rest) == killed
    assert "run the same command again" in rest
