"""A copy of an example that a test may shorten, and `spotladder run` on it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from spotladder.checkpoints.entries import Commit
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.core.model import JobState
from spotladder.core.model.codec import load_state
from spotladder.display.report.facts import RunFacts, gather
from spotladder.records.recorded import Recorded
from spotladder.records.timeline import read

EXAMPLES = Path(__file__).parents[2] / "examples"
LIMIT = 1500.0
"""Seconds after which a run has failed. It takes about 100 on an idle machine, and many times as long beside others."""


@dataclass
class Demo:
    """A copy of an example in `folder`. `run` first writes `job` and `world` back to their files. The state of runs is
    in `project`/state.
    """

    name: str
    folder: Path
    job: dict[str, Any]
    world: dict[str, Any]

    @classmethod
    def copied(cls, name: str, folder: Path) -> Demo:
        """A copy of the example, at `folder`/examples/NAME as in the project."""
        own = folder / "examples" / name
        shutil.copytree(EXAMPLES / name, own, ignore=shutil.ignore_patterns("checkpoints", "__pycache__"))
        return cls.at(own)

    @classmethod
    def at(cls, folder: Path) -> Demo:
        """The copy of an example in that folder of a project."""
        read = YAML(typ="safe")
        return cls(folder.name, folder, read.load(folder / "job.yaml"), read.load(folder / "world.yaml"))

    @property
    def project(self) -> Path:
        """The folder that the copy of the project is in."""
        return self.folder.parents[1] if self.folder.parent.name == "examples" else self.folder.parent

    @property
    def ray(self) -> dict[str, Any]:
        """The RayJob's spec."""
        spec: dict[str, Any] = self.job["spec"]["workload"]["ray"]["template"]["spec"]
        return spec

    def run(self) -> None:
        """`spotladder run`, which must succeed."""
        for name, content in (("job.yaml", self.job), ("world.yaml", self.world)):
            with (self.folder / name).open("w") as file:
                YAML().dump(content, file)
        command = [sys.executable, "-m", "spotladder.cli.main", "run", "job.yaml", "--fresh", "--world", "world.yaml"]
        self._succeeds(command, self.folder)

    def make(self) -> None:
        """Run `make demo` with the installation of `make setup`. It must succeed."""
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy2(EXAMPLES.parent / name, self.project)
        (self.project / ".venv").symlink_to(Path(sys.executable).parents[1])
        self._succeeds(["make", "--old-file=.venv/.setup", "demo"], self.project)
        self.folder = self.project / "spotladder-demo"

    def _succeeds(self, command: list[str], folder: Path) -> None:
        variables = {
            key: value for key, value in os.environ.items() if not key.startswith(("SPOTLADDER_", "RAY_", "MAKE"))
        }
        done = subprocess.run(
            command,
            cwd=folder,
            env={**variables, "XDG_STATE_HOME": str(self.project / "state")},
            timeout=LIMIT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert done.returncode == 0, done.stdout + self.driver_logs()[-4000:]

    def driver_logs(self) -> str:
        """The output of the programs of all attempts."""
        return "".join(log.read_text(errors="replace") for log in sorted(self.project.glob("state/**/driver.log")))

    @property
    def files(self) -> Path:
        """The job's checkpoint folder."""
        return self.folder / "checkpoints" / self.name

    @property
    def log(self) -> CommitLog:
        return CommitLog(open_store(str(self.folder / "checkpoints")), self.name)

    def last(self) -> Commit:
        commit = self.log.newest()
        assert commit is not None
        return commit

    def state(self) -> JobState:
        """The stored state at the end."""
        (file,) = self.project.glob("state/**/state.json")
        return load_state(file.read_text())

    def timeline(self) -> Recorded:
        """The records of the timeline."""
        (file,) = self.project.glob("state/**/timeline.jsonl")
        return read(file)

    def facts(self) -> RunFacts:
        """The facts of the run's report."""
        return gather(self.timeline())


def accuracy(output: str) -> float:
    """The accuracy that the program prints at its end."""
    accuracies = re.findall(r"test accuracy (\d\.\d+)", output)
    assert accuracies, output[-2000:]
    return float(accuracies[-1])
