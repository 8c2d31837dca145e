"""A copy of an example that a test may shorten, and `spotladder run` on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from spotladder.checkpoints.entries import Commit
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.store import open_store
from spotladder.core.codec import load_state
from spotladder.core.model import JobState
from spotladder.story.report.facts import Facts, gather
from spotladder.story.timeline import read

EXAMPLES = Path(__file__).parents[2] / "examples"
LIMIT = 280.0


@dataclass
class Demo:
    """An example's folder in `folder`; `job` and `world` are written back before each run."""

    name: str
    folder: Path
    job: dict[str, Any]
    world: dict[str, Any]

    @classmethod
    def copied(cls, name: str, folder: Path) -> Demo:
        shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns("checkpoints", "__pycache__"))
        read = YAML(typ="safe")
        return cls(name, folder / name, read.load(folder / name / "job.yaml"), read.load(folder / name / "world.yaml"))

    @property
    def ray(self) -> dict[str, Any]:
        """The RayJob's spec."""
        spec: dict[str, Any] = self.job["spec"]["workload"]["ray"]["template"]["spec"]
        return spec

    def run(self, *, world: bool = True) -> str:
        """`spotladder run`, which must succeed; what it printed. Without `world`, no node is ever lost."""
        for name, content in (("job.yaml", self.job), ("world.yaml", self.world)):
            with (self.folder / name).open("w") as file:
                YAML().dump(content, file)
        command = [sys.executable, "-m", "spotladder.cli.main", "run", "job.yaml", "--fresh", "--state-dir", "state"]
        variables = {key: value for key, value in os.environ.items() if not key.startswith(("SPOTLADDER_", "RAY_"))}
        done = subprocess.run(
            [*command, *(["--world", "world.yaml"] if world else [])],
            cwd=self.folder,
            env=variables,
            timeout=LIMIT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert done.returncode == 0, done.stdout + self.driver_logs()[-4000:]
        return done.stdout

    def driver_logs(self) -> str:
        """What the programs of all attempts wrote."""
        return "".join(log.read_text(errors="replace") for log in sorted(self.folder.glob("state/**/driver.log")))

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
        """What the decider remembers at the end."""
        (file,) = self.folder.glob("state/*/*/state.json")
        return load_state(file.read_text())

    def facts(self) -> Facts:
        """What the report of the run says."""
        (file,) = self.folder.glob("state/*/*/timeline.jsonl")
        return gather(read(file), self.state())
