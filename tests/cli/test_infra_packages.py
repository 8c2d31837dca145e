"""Each command of `spotladder infra` on a machine without the packages of the extras, or without the programs.

A missing package or program is named in one line with exit code 5. The test fails for a new command until it has a line
below.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from spotladder.cli.infra import app
from tests.topology.builders import FLEET
from tests.topology.programs import program

HIDDEN = """\
import contextlib, io, json, os, sys

BLOCKED = {"pulumi", "cdktn", "cdktn_aws", "cdktn_provider_google", "jsii", "boto3", "botocore", "google", "requests"}


class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in BLOCKED else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
from spotladder.cli.main import main

answers = []
for os.environ["PATH"], arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(["infra", *arguments])
        except BaseException as error:
            code = repr(error)
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""

WITHOUT_PACKAGES: dict[tuple[str, ...], str] = {
    ("validate",): "",
    ("schema",): "",
    ("render",): "",
    ("plan", "--offline"): "",
    ("plan", "--cluster", "east"): "cdktn",
    ("state",): "boto3",
    ("synth", "--cluster", "east"): "cdktn",
    ("synth", "--cluster", "west"): "cdktn",
    ("bootstrap", "--cluster", "east"): "cdktn",
    ("kubeconfig", "--cluster", "east"): "boto3",
    ("kubeconfig", "--cluster", "west"): "google.auth",
    ("token", "aws", "east", "us-east-1"): "boto3",
    ("token", "gcp", "west", "us-central1"): "google.auth",
    ("destroy", "--cluster", "east", "--yes"): "cdktn",
    ("destroy", "--cluster", "lab", "--yes"): "pulumi",
    ("destroy", "--cluster", "east", "--yes", "--skip-platform"): "boto3",
    ("rollout", "--cluster", "lab"): "pulumi",
    ("rollout", "--cluster", "lab", "--dry-run"): "pulumi",
    ("status", "--cluster", "lab"): "pulumi",
    ("drift", "--cluster", "lab"): "pulumi",
    ("rollback", "--cluster", "lab"): "pulumi",
    ("upgrade", "--cluster", "lab"): "pulumi",
    ("upgrade", "--cluster", "lab", "--apply"): "pulumi",
}
"""The package that each command names; "" for those that need none."""

WITHOUT_PROGRAMS: dict[tuple[str, ...], str] = {
    ("plan", "--cluster", "east"): "neither terraform nor tofu",
    ("bootstrap", "--cluster", "east"): "neither terraform nor tofu",
    ("destroy", "--cluster", "east", "--yes"): "neither terraform nor tofu",
    ("destroy", "--cluster", "lab", "--yes"): "helm",
    ("rollout", "--cluster", "lab"): "pulumi",
    ("rollout", "--cluster", "lab", "--dry-run"): "pulumi",
    ("status", "--cluster", "lab"): "pulumi",
    ("drift", "--cluster", "lab"): "pulumi",
    ("rollback", "--cluster", "lab"): "pulumi",
    ("upgrade", "--cluster", "lab"): "pulumi",
}

ANYWHERE = {"doctor", "explain", "permissions"}
"""Commands that need neither: doctor lists what is missing, the others read files."""

MISSING = re.compile(r"^error: (?:.*: )?([a-z0-9.]+) is not installed in .*: pip install 'spotladder\[")

PROGRAMS = {"terraform": "Terraform v1.12.1", "helm": "v4.2.4", "kubectl": "", "pulumi": "v3.250.0"}
DOCTOR = ("doctor", "--offline", "--output", "json")


def answers(folder: Path) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each command: with the programs alone on the PATH, then without programs. One
    process runs them all."""
    (folder / "fleet.yaml").write_text(FLEET)
    path = folder / "bin"
    path.mkdir()
    for name, printed in PROGRAMS.items():
        program(path, name, f"echo '{printed}'")
    asked = [(path, words) for words in WITHOUT_PACKAGES]
    asked += [(folder / "none", words) for words in (*WITHOUT_PROGRAMS, DOCTOR)]
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN, json.dumps(asked, default=str)],
        cwd=folder,
        env={"PATH": "", "HOME": str(folder), "KUBECONFIG": str(folder / "none")},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return [tuple(answer) for answer in json.loads(done.stdout.splitlines()[-1])]


def test_every_command_is_covered() -> None:
    names = {str(entry.name or entry.callback.__name__) for entry in app.registered_commands if entry.callback}
    assert names == {words[0] for words in WITHOUT_PACKAGES} | ANYWHERE


def test_a_missing_package_or_program_is_named(tmp_path: Path) -> None:
    found = answers(tmp_path)
    first = len(WITHOUT_PACKAGES)
    for (words, package), (code, out, err) in zip(WITHOUT_PACKAGES.items(), found[:first], strict=True):
        last = err.strip().splitlines()[-1:] or [""]
        named = match[1] if (match := MISSING.match(last[0])) else ""
        assert (code, named) == (5 if package else 0, package), f"{words}: {code}\n{out}\n{err}"
        assert "Traceback" not in err
    for (words, missing), (code, out, err) in zip(WITHOUT_PROGRAMS.items(), found[first:-1], strict=True):
        lines = [line for line in err.splitlines() if line.startswith("error: ")]
        assert code == 5, f"{words}: {code}\n{out}\n{err}"
        assert len(lines) == 1, err
        assert lines[0].startswith(f"error: {missing} is"), lines[0]
        assert "install" in lines[0]
    code, out, err = found[-1]
    assert code == 5, err
    failed = {entry["check"]: entry["fix"] for entry in json.loads(out)["checks"] if entry["status"] == "failed"}
    assert {"helm", "kubectl", "pulumi", "terraform or tofu"} <= set(failed)
    assert all(failed.values()), "each has a remedy"
