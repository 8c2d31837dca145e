"""`spotladder infra` as a user sees it, without the packages of a cloud."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from spotladder.cli.infra.applying import finish
from spotladder.errors import EnvironmentFailure
from tests.cli.terminal import call
from tests.topology.builders import FLEET

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    return path


def test_validate_lists_the_clusters(capsys: Capture, fleet: Path) -> None:
    answer = call(capsys, "infra", "validate", "--fleet", fleet)
    assert (answer.code, answer.err) == (0, "")
    assert [line.split()[:3] for line in answer.out.splitlines()[1:3]] == [
        ["east", "aws", "us-east-1"],
        ["west", "gcp", "us-central1"],
    ]


def test_warnings_do_not_fail(capsys: Capture, fleet: Path) -> None:
    fleet.write_text(FLEET.replace("  state: {uri: s3://acme-state/fleet, region: us-east-1}\n", ""))
    answer = call(capsys, "infra", "validate", "--fleet", fleet)
    assert answer.code == 0
    assert answer.err.startswith(f"warning: {fleet}:5:3: spec: has no state")


@pytest.mark.parametrize("arguments", [("rollout", "--state"), ("plan", "--to")])
def test_a_file_in_place_of_a_folder(arguments: tuple[str, str], capsys: Capture, fleet: Path) -> None:
    command, option = arguments
    answer = call(capsys, "infra", command, "--fleet", fleet, option, fleet)
    assert answer.code == 2
    assert f"'{option}': dir '{fleet}' is a file" in answer.err


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (None, "spec.rollout.smoke.job: {folder}/smoke.yaml: cannot be read"),
        ("kind: Job\n", "{folder}/smoke.yaml:1:7: kind: "),
        ((Path("examples") / "on-a-cluster" / "digits.yaml").read_text(), ""),
    ],
    ids=["missing", "another kind", "a job"],
)
def test_validate_reads_the_smoke_job(job: str | None, message: str, capsys: Capture, fleet: Path) -> None:
    """A rollout refuses the same file."""
    fleet.write_text(f"{FLEET}  rollout: {{smoke: {{job: smoke.yaml}}}}\n")
    if job is not None:
        (fleet.parent / "smoke.yaml").write_text(job)
    answer = call(capsys, "infra", "validate", "--fleet", fleet)
    assert answer.code == (2 if message else 0)
    assert message.format(folder=fleet.parent) in answer.err


@pytest.mark.parametrize(("home", "code"), [("east", 0), ("lost", 2)])
def test_validate_lists_the_problems_as_json(home: str, code: int, capsys: Capture, fleet: Path) -> None:
    fleet.write_text(FLEET.replace("home: east", f"home: {home}"))
    answer = call(capsys, "infra", "validate", "--fleet", fleet, "--output", "json")
    found = json.loads(answer.out)
    assert (answer.code, found["valid"]) == (code, code == 0)
    assert [problem["path"] for problem in found["problems"]] == ([] if code == 0 else ["spec.home"])


def test_schema_prints_the_schema_of_a_fleet(capsys: Capture) -> None:
    assert json.loads(call(capsys, "infra", "schema").out)["title"] == "Fleet"


def test_render_prints_the_objects_of_one_cluster(capsys: Capture, fleet: Path) -> None:
    answer = call(capsys, "infra", "render", "--fleet", fleet, "--cluster", "west", "--output", "json")
    assert [entry["metadata"]["name"] for entry in json.loads(answer.out)["computeClasses"]] == [
        "west-heads",
        "l4-spot",
        "l4-on-demand",
    ]


def test_an_unknown_cluster_is_rejected(capsys: Capture, fleet: Path) -> None:
    answer = call(capsys, "infra", "render", "--fleet", fleet, "--cluster", "north")
    assert answer.code == 2
    assert 'the fleet has no cluster "north" (it has east, west, alpha, lab, laptop)' in answer.err


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--cluster", "west", "--cluster", "east"], ["east", "west"]),
        (["--cluster", "alpha", "--cluster", "east", "--cluster", "west", "--cloud", "gcp"], ["west", "alpha"]),
        (["--cloud", "gcp"], ["west", "alpha"]),
        (["--cloud", "aws"], ["east"]),
        (["--cloud", "kind"], ["laptop"]),
        ([], ["east", "west", "alpha", "lab", "laptop"]),
    ],
)
def test_clusters_can_be_selected_by_name_and_cloud(
    arguments: list[str], names: list[str], capsys: Capture, fleet: Path
) -> None:
    answer = call(capsys, "infra", "render", "--fleet", fleet, "--output", "json", *arguments)
    assert list(json.loads(answer.out)) == names


TARGETS = ("doctor", "plan", "bootstrap", "kubeconfig", "destroy", "rollout", "status")
"""Commands for some of the clusters, which are targets of make, too."""


@pytest.mark.parametrize("command", TARGETS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cloud", "azure"], "--cloud azure: expected aws, gcp, existing, kind"),
        (["--cloud", "aws", "--cluster", "west"], "--cloud aws: no cluster has this cloud (west: gcp)"),
        (["--cluster", "north"], 'the fleet has no cluster "north" (it has east, west, alpha, lab, laptop)'),
    ],
)
def test_a_cloud_without_clusters(
    command: str, arguments: list[str], message: str, capsys: Capture, fleet: Path
) -> None:
    answer = call(capsys, "infra", command, "--fleet", fleet, *arguments)
    assert answer.code == 2
    assert message in answer.err


@pytest.mark.parametrize(
    ("chosen", "options"),
    [
        ((), ""),
        (("CLUSTER=east",), " --cluster east"),
        (("CLUSTER=east west",), " --cluster east --cluster west"),
        (("CLOUD=aws",), " --cloud aws"),
    ],
)
def test_make_passes_the_chosen_clusters(chosen: tuple[str, ...], options: str) -> None:
    """`make -n` prints what make would run."""
    make = ["make", "--dry-run", "--assume-old=setup-infra", "FLEET=f.yaml", *TARGETS, *chosen]
    done = subprocess.run(make, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    lines = (" ".join(line.split()) for line in done.stdout.splitlines())
    ran = [line.partition("spotladder infra ")[2] for line in lines if "spotladder infra" in line]
    for target in TARGETS:
        (words,) = [words for words in ran if words.startswith(f"{target} ")]
        assert words.startswith(f"{target} --fleet f.yaml{options}")
        assert words.count("--cl") == options.count("--cl")


def test_an_interrupt_is_the_result_of_its_cluster(capsys: Capture) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    tasks = [("east", lambda: None, None), ("west", interrupted, None), ("lab", lambda: None, None)]
    with pytest.raises(KeyboardInterrupt):
        finish(tasks, done="gone")
    printed = capsys.readouterr()
    rows = [line.split(maxsplit=1) for line in printed.out.splitlines()[1:]]
    assert rows == [["east", "gone"], ["west", "interrupted"], ["lab", "not begun"]]
    assert printed.err == "cluster west: interrupted: run the same command again to continue\n"


class StackWithState:
    """A stack with one resource in its state."""

    def ids(self) -> dict[str, str]:
        return {"aws_vpc.vpc": "vpc-1"}


@pytest.mark.parametrize(
    ("stack", "result", "remedy"),
    [
        (None, "failed", "run the same command again to continue"),
        (
            StackWithState(),
            "failed with 1 resources in the state",
            "completed changes are in the state: run the same command again to continue",
        ),
    ],
)
def test_only_a_cluster_with_a_stack_has_changes_in_the_state(
    stack: Any, result: str, remedy: str, capsys: Capture
) -> None:
    def fails() -> None:
        raise EnvironmentFailure("cluster west: no answer")

    tasks: Any = [("east", lambda: None, StackWithState()), ("west", fails, stack)]
    with pytest.raises(EnvironmentFailure) as raised:
        finish(tasks, done="gone")
    assert str(raised.value) == f"cluster west: no answer\n{remedy}"
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [["east", "gone"], ["west", result]]


def test_plan_prints_the_costs_of_clusters_and_tiers(capsys: Capture, fleet: Path) -> None:
    answer = call(capsys, "infra", "plan", "--offline", "--fleet", fleet, "--cluster", "east")
    lines = [line.split() for line in answer.out.splitlines()]
    assert ["in", "all", "0.365"] in lines
    assert ["g5-on-demand", "east", "on-demand", "1.006", "1.006", "0.048"] in lines
    assert ["g5-spot", "east", "spot", "unknown", "1.006", "0.048"] in lines


def test_plan_prints_the_costs_as_json(capsys: Capture, fleet: Path) -> None:
    found = json.loads(call(capsys, "infra", "plan", "--offline", "--fleet", fleet, "--output", "json").out)
    assert set(found["idle"]) == {"east", "west", "alpha"}
    assert found["tiers"][0]["pool"] == "g5-spot"


def test_a_kubeconfig_is_written_for_created_clusters_only(capsys: Capture, fleet: Path) -> None:
    answer = call(capsys, "infra", "kubeconfig", "--fleet", fleet, "--cluster", "lab", "--cluster", "laptop")
    assert (answer.code, answer.out) == (2, "")
    assert "your own kubeconfig has the contexts of these clusters (lab-admin, kind-laptop): use it" in answer.err


def test_a_command_names_the_stack_that_is_missing(capsys: Capture, fleet: Path, tmp_path: Path) -> None:
    missing = call(capsys, "infra", "explain", "west", "--fleet", fleet, "--from", tmp_path)
    assert missing.code == 2
    assert "is not a stack: write it with spotladder infra synth" in missing.err
