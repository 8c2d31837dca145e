"""The commands of a stack, with a program in Terraform's place: what it is called with, and how it is stopped."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spotladder_infra.terraform.events import Action, Event, Finished, Planned
from spotladder_infra.terraform.runs import remember
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


PRODUCTS = {"terraform": "Terraform", "tofu": "OpenTofu"}


def hook(kind: str, address: str) -> str:
    entry = {"resource": {"addr": address}, "action": "create", "elapsed_seconds": 1}
    return json.dumps({"type": kind, "hook" if kind.startswith("apply") else "change": entry})


def error(summary: str, detail: str = "") -> str:
    return json.dumps({"type": "diagnostic", "diagnostic": {"severity": "error", "summary": summary, "detail": detail}})


def stack(folder: Path, name: str = "terraform", **answers: object) -> TerraformStack:
    program = folder / name
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    (folder / "answers.json").write_text(json.dumps(answers))
    return TerraformStack(Tool(str(program), PRODUCTS[name], "1.11.4"), folder, "east", dict(os.environ))


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_plan_and_apply(tmp_path: Path) -> None:
    lines = [hook("planned_change", "aws_vpc.vpc"), "not json", hook("planned_change", "aws_eip.nat")]
    done = [hook("apply_start", "aws_vpc.vpc"), hook("apply_complete", "aws_vpc.vpc")]
    made = stack(tmp_path, plan=[0, lines, False], apply=[0, done, False])
    assert made.plan() == [Planned("aws_vpc.vpc", Action.CREATE), Planned("aws_eip.nat", Action.CREATE)]
    (tmp_path / "tfplan").touch()
    seen: list[Event] = []
    assert made.apply(seen.append) == [Finished("aws_vpc.vpc", "create", 1)]
    assert len(seen) == 2
    assert not (tmp_path / "tfplan").exists()
    made.plan(destroy=True, targets=["aws_vpc.vpc"])
    assert calls(tmp_path) == [
        "plan -json -input=false -out=tfplan -lock-timeout=10s",
        "apply -json -input=false -lock-timeout=10s tfplan",
        "plan -json -input=false -out=tfplan -lock-timeout=10s -destroy -target=aws_vpc.vpc",
    ]


def test_opentofu_gets_the_same_commands_as_terraform(tmp_path: Path) -> None:
    outputs = json.dumps({"spotladder": {"value": {"version": 1}}})
    called = {}
    for name, product in PRODUCTS.items():
        folder = tmp_path / name
        folder.mkdir()
        lines = [hook("planned_change", "aws_vpc.vpc")]
        made = stack(folder, name, plan=[0, lines, False], output=[0, [outputs], False])
        made.init()
        made.take_over({"aws_vpc.vpc": "vpc-1"})
        assert made.plan() == [Planned("aws_vpc.vpc", Action.CREATE)]
        made.apply()
        assert made.output() == {"version": 1}
        made.addresses()
        made.forget(["aws_s3_bucket.checkpoints"])
        assert made.unlock_command() == f"{name} -chdir={folder} force-unlock"
        called[name] = calls(folder)
        (folder / "answers.json").write_text(json.dumps({"plan": [3, [], False]}))
        with pytest.raises(TerraformFailed, match=f"cluster east: {product} plan failed: exit code 3"):
            made.plan()
    assert called["tofu"] == called["terraform"]
    assert [line.split()[0] for line in called["tofu"]] == ["init", "plan", "apply", "output", "state", "state"]


def test_imports_live_as_long_as_their_plan(tmp_path: Path) -> None:
    made = stack(tmp_path)
    made.take_over({"aws_vpc.vpc": "vpc-1"})
    written = json.loads((tmp_path / "adopt.tf.json").read_text())
    assert written == {"import": [{"to": "aws_vpc.vpc", "id": "vpc-1"}]}
    made.apply()
    made.drop_plan()
    assert not (tmp_path / "adopt.tf.json").exists()


def test_errors_are_those_of_the_diagnostics(tmp_path: Path) -> None:
    made = stack(tmp_path, apply=[1, [error("creating IAM Role", "EntityAlreadyExists: x"), "noise"], False])
    with pytest.raises(
        TerraformFailed, match="cluster east: creating IAM Role: EntityAlreadyExists: x: it does not"
    ) as failed:
        made.apply()
    assert failed.value.exit_code == 5
    assert [entry.summary for entry in failed.value.diagnostics] == ["creating IAM Role"]


def test_a_program_without_output(tmp_path: Path) -> None:
    with pytest.raises(TerraformFailed, match="cluster east: Terraform plan failed: exit code 3"):
        stack(tmp_path, plan=[3, [], False]).plan()


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


RUNNER = """\
import pathlib, sys
sys.path.insert(0, {root!r})
from tests.terraform.test_stack import *
import os
from spotladder_infra.terraform.runs import remember
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


LOCK = """Lock Info:
  ID:        1-2-3
  Operation: OperationTypeApply
  Who:       ana@{host}
  Created:   {created} +0000 UTC
"""


@pytest.mark.parametrize(
    ("host", "alive", "minutes", "released"),
    [
        (platform.node(), False, 0, True),
        (platform.node(), True, 0, False),
        ("elsewhere", False, 0, False),
        (platform.node(), False, -90, False),
    ],
)
def test_the_lock_of_a_killed_run_is_released(
    host: str, alive: bool, minutes: int, released: bool, tmp_path: Path
) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    record = tmp_path / "runs" / "east.json"
    remember(record, os.getpid() if alive else gone.pid)
    created = (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M:%S.%f")
    locked = error("Error acquiring the state lock", LOCK.format(host=host, created=created))
    made = stack(tmp_path, plan=[1, [locked], False])
    made = replace(made, run_file=record)
    with pytest.raises(TerraformFailed, match=f"the state is locked by ana@{host} for apply"):
        made.plan()
    names = [call.split()[0] for call in calls(tmp_path)]
    assert names == (["plan", "force-unlock", "plan"] if released else ["plan"])
    assert "force-unlock -force 1-2-3" in calls(tmp_path) or not released
    assert record.exists(), "the next run must still know whose lock it is"
