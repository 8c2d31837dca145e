"""`spotladder run` with invalid input: one line with position and remedy, exit code 2 or 5, no change of any data."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from spotladder import extras, memory
from spotladder.api.command_job import command_job, name_of
from spotladder.api.local_mode import local_program
from spotladder.api.program_folder import started_script
from spotladder.api.read import read_job_and_world
from spotladder.cli.local.run_input import RunArguments
from spotladder.cli.main import main
from spotladder.cli.run import _report
from spotladder.core.model import JobSpec, JobState, Stage, Tier
from spotladder.local import nodes
from spotladder.local.run import Request, RunOutcome, _plan
from spotladder.records import model as records
from spotladder.records import timeline
from tests.train.builders import log_of, variables

JOB = """\
apiVersion: spotladder.io/v1alpha1
kind: TieredJob
metadata: {name: digits, namespace: team-a}
spec:
  tiers:
  - {name: spot-a, capacityTier: a}
  checkpoints: {uri: ./checkpoints, interval: 20steps}
  workload:
    ray:
      template:
        spec:
          entrypoint: python train.py
          rayClusterSpec: {workerGroupSpecs: [{groupName: workers, replicas: 1}]}
"""
WORLD = "pools:\n  a: {nodes: 1}\n"


class Files:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.job, self.world, self.state = folder / "job.yaml", folder / "world.yaml", folder / "state"
        self.job.write_text(JOB)
        self.world.write_text(WORLD)
        (folder / "train.py").write_text("print('hello')\n")

    def run(self, *more: str) -> int:
        return main(["run", str(self.job), "--world", str(self.world), "--state-dir", str(self.state), *more])

    def change(self, old: str, new: str) -> None:
        assert old in JOB
        self.job.write_text(JOB.replace(old, new))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("a node was started")

    monkeypatch.setattr(nodes.RayNode, "__init__", started)
    monkeypatch.setattr("spotladder.local.run.Reaper", started)
    return Files(tmp_path)


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        pytest.param(("entrypoint: python train.py", "suspend: false"), 2, r"entrypoint", id="no entrypoint"),
        pytest.param(
            ("python train.py", "python trian.py"),
            2,
            r'job\.yaml:12:23: spec\S+entrypoint: .*no file "trian\.py"',
            id="no such script",
        ),
        pytest.param(("  tiers:", "  policy: wishful\n  tiers:"), 2, r"wishful.*ordered", id="no such policy"),
        pytest.param(("./checkpoints", "train.py"), 5, r"train\.py", id="a file where the bucket should be"),
    ],
)
def test_an_invalid_job_is_reported_with_its_position(
    files: Files, capsys: pytest.CaptureFixture[str], change: tuple[str, str], code: int, message: str
) -> None:
    files.change(*change)
    assert files.run() == code
    said = capsys.readouterr().err.strip()
    assert said.startswith("error: ")
    assert re.search(message, said), said
    assert "Traceback" not in said


def test_a_program_that_does_not_use_the_library_is_named_before_the_start(files: Files) -> None:
    with pytest.raises(AssertionError):  # The first process is not started here.
        files.run()
    noted = [each.text for path in files.state.rglob("timeline.jsonl") for each in timeline.read(path).records
             if isinstance(each, records.Noted)]  # fmt: skip
    assert ["the program train.py does not import spotladder.train" in text for text in noted] == [True]


@pytest.mark.parametrize("world", [True, False])
def test_a_jobset_is_rejected_in_local_mode(files: Files, capsys: pytest.CaptureFixture[str], world: bool) -> None:
    pods = "{spec: {template: {spec: {containers: [{name: train}]}}}}"
    jobset = f"    jobSet: {{template: {{spec: {{replicatedJobs: [{{name: w, template: {pods}}}]}}}}}}\n"
    files.job.write_text(JOB[: JOB.index("    ray:")] + jobset)
    arguments = ["run", str(files.job), "--state-dir", str(files.state)]
    assert main([*arguments, *(["--world", str(files.world)] if world else [])]) == 2
    said = capsys.readouterr().err
    assert re.search(r"job\.yaml:9:\d+: spec\.workload\.jobSet: local mode cannot run jobSet", said), said


@pytest.mark.parametrize(
    ("given", "report", "state", "said"),
    [
        (
            RunArguments(words=["my job.yaml"], world=Path("world.yaml")), Path("out"), Path("st"),
            "spotladder run 'my job.yaml' --world world.yaml --report out --state-dir st --continue",
        ),
        (RunArguments(words=["job.yaml"]), None, None, "spotladder run job.yaml --continue"),
        (
            RunArguments(words=["python", "train.py", "--lr", "3"], folder="out", evictions=["60s", "2m"]), None, None,
            "spotladder run --program-folder out --evict 60s --evict 2m --continue -- python train.py --lr 3",
        ),
    ],
)  # fmt: skip
def test_the_command_to_continue_repeats_the_options(
    given: RunArguments, report: Path | None, state: Path | None, said: str
) -> None:
    assert given.to_continue(report, state) == said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--world", "world.yaml", "--", "python", "train.py"], "--world is for a job file, and python is a command"),
        (["--evict", "5s", "job.yaml"], "--evict is for a command without a job file: use interruptions of a world"),
        (["--program-folder", "out", "job.yaml"], "use checkpoints.programFolder"),
        (["job.yaml", "train.py"], "train.py is one argument too many: the job file job.yaml says what runs"),
        (["--evict", "5", "--", "python", "train.py"], "--evict: '5' has no unit: write 5h, 5m or 5s"),
        (["--evict", "5s", "--evict", "20steps", "--", "python", "x.py"], "name either times or steps"),
        (["--evict", "0steps", "--", "python", "x.py"], "--evict: '0steps' is not a step: write one like 20steps"),
        (["--", "no-such-program", "x"], 'error: COMMAND: no program "no-such-program" on PATH'),
        (["--", "python", "trian.py"], 'error: COMMAND: no file "trian.py" in'),
        (["train.py"], ": start the script with python train.py"),
        (["--program-folder", "s3://b/x", "--", "python", "x.py"], "error: --program-folder: must be a folder"),
        (["--evict", "99999h", "--", "python", "x.py"], "error: --evict: must be at most 87600h"),
    ],
)
def test_a_command_with_options_of_a_job_file_is_refused(
    arguments: list[str],
    said: str,
    files: Files,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(files.folder)
    assert main(["run", "--state-dir", str(files.state), *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "Train_Model.py", "--x", "y"], "bert-train-model"),
        (["python", "src/train.py"], "src-train"),
        (["bash", "-c", "echo"], "bert-bash"),
        (["/opt/run.sh"], "opt-run"),
        (["…"], "bert-command"),
        (["x" * 100], "x" * 40),
        (["python", "/1/" + "y" * 50 + "/train.py"], "y" * 34 + "-train"),
        (["python", "/1/01_train.py"], "job-1-01-train"),
    ],
)
def test_a_command_names_its_job(command: list[str], name: str) -> None:
    job = command_job(command, name_of(command, Path("/home/me/BERT")), Path("/state/checkpoints"), "out")
    assert job.metadata.name == name
    assert local_program(job, "spot").entrypoint == shlex.join(command)
    assert job.spec.checkpoints.program_folder == "out"


def test_a_missing_world_file_is_reported(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.world.unlink()
    assert files.run() == 2
    assert "world.yaml" in capsys.readouterr().err


def test_fresh_and_resume_exclude_each_other(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert files.run("--fresh", "--continue") == 2
    assert "exclude each other" in capsys.readouterr().err


def test_too_little_memory_for_ray_is_reported(
    files: Files, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1024)
    assert files.run() == 5
    assert "not enough memory for Ray" in capsys.readouterr().err


def test_a_missing_ray_installation_is_reported_with_the_extra_to_install(
    files: Files, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert files.run() == 5
    assert "spotladder[local]" in capsys.readouterr().err


def test_a_job_that_is_already_running_is_not_started_again(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    from spotladder.local.state import JobFolder

    with JobFolder(files.state, "team-a", "digits").owned():
        assert files.run("--continue") == 5
    assert re.search(r"process \d+ is running this job", capsys.readouterr().err)


def test_checkpoints_of_another_job_are_not_touched(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    from spotladder.checkpoints.log import CommitLog
    from spotladder.checkpoints.open_store import open_store

    folder = files.folder / "checkpoints"
    CommitLog(open_store(str(folder)), job="digits", namespace="team-b").start(1, "spot-a")
    before = sorted(path.name for path in folder.rglob("*"))
    assert files.run("--fresh") == 5
    assert "team-b" in capsys.readouterr().err
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_a_program_with_checkpoints_of_its_own_is_started_by_the_library(files: Files) -> None:
    files.change("interval: 20steps", "programFolder: out")
    job, world = read_job_and_world(files.job, files.world)
    entrypoint = _plan(Request(job, world, files.job, files.world, files.state)).job.tiers["spot-a"].entrypoint
    assert entrypoint == started_script("python train.py", "out", sys.executable)
    environ = {**os.environ, **variables(files.folder / "bucket")}
    command = ["/bin/sh", "-c", entrypoint]
    done = subprocess.run(command, cwd=files.folder, env=environ, capture_output=True, timeout=600, check=False)
    assert (done.returncode, done.stdout) == (0, b"hello\n")
    assert log_of(files.folder / "bucket").read().attempt == 1


def test_the_program_gets_the_settings_of_the_spec(files: Files) -> None:
    files.change("  checkpoints:", "  grace: 20s\n  hangTimeout: 90s\n  checkpoints:")
    job, world = read_job_and_world(files.job, files.world)
    environment = _plan(Request(job, world, files.job, files.world, files.state)).job.environment
    assert environment.items() >= {
        "SPOTLADDER_INTERVAL": "20steps", "SPOTLADDER_GRACE": "20s", "SPOTLADDER_HANG_TIMEOUT": "1m30s",
    }.items()  # fmt: skip


def test_a_deadline_in_the_past_is_rejected(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.change("  tiers:", "  deadline: 2020-01-01T00:00:00Z\n  tiers:")
    assert files.run() == 2
    assert re.search(r"job\.yaml:5:13: spec\.deadline: is in the past", capsys.readouterr().err)
    assert main(["validate", str(files.job)]) == 2
    assert "job.yaml:5:13: spec.deadline: is in the past" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--state-dir", "--report"])
def test_an_empty_folder_name_is_rejected(
    files: Files, capsys: pytest.CaptureFixture[str], option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files.folder)
    before = sorted(files.folder.iterdir())
    assert main(["run", str(files.job), option, ""]) == 2
    assert "the folder name is empty" in capsys.readouterr().err
    assert sorted(files.folder.iterdir()) == before


def test_a_state_folder_that_cannot_be_created_is_reported(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(files.job), "--state-dir", "/proc/1/x"]) == 5
    said = capsys.readouterr().err
    assert "/proc/1/x" in said
    assert "cannot make it" in said
    assert "full" not in said


def test_a_report_folder_that_is_not_writable_is_reported_before_the_start(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert files.run("--report", str(files.folder / "train.py" / "report")) == 5
    assert "train.py/report: cannot be written: Not a directory; name another folder" in capsys.readouterr().err
    assert not files.state.exists()


def test_a_report_that_cannot_be_written_at_the_end_goes_to_the_run_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    spec = JobSpec(tiers=(Tier("spot-a", max_failures=0),), workers=1, submitted_at=1.0)
    with timeline.Timeline(folder / "timeline.jsonl") as lines:
        lines.append(records.Began(1.0, "digits", "team-a", spec, resumed=False))
    (tmp_path / "file").write_text("")
    _report(RunOutcome(0, JobState(stage=Stage.SUCCEEDED), folder), tmp_path / "file" / "report")
    said = capsys.readouterr()
    assert "file/report: cannot write the report: Not a directory" in said.err
    assert said.out.endswith(f"\nreport: {folder / 'report' / 'report.html'}\n")
    assert (folder / "report" / "report.html").is_file()
