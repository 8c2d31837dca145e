"""The folder of a job for `spotladder run`, a program, and the pools of a world in which no node is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from spotladder.core.model import JobState
from spotladder.core.model.codec import load_state
from spotladder.local.reaper import members
from spotladder.records.model import Record
from spotladder.records.timeline import read

PROGRAM = """\
import json, time
from spotladder import train

job = train.current()
start, total, history = 0, {total}, []
with job.resume() as found:
    if found:
        history, start = json.loads((found.path / "history.json").read_text()), found.step
for step in job.steps(start, total):
    time.sleep({pause})
    history.append(step)
    if job.should_commit(step):
        with job.commit(step, {{"loss": 1 / step}}) as folder:
            (folder / "history.json").write_text(json.dumps(history))
assert history == list(range(1, total + 1)), "a step was lost or done twice"
print("all steps in their order", flush=True)
"""

JOB = """\
apiVersion: spotladder.io/v1alpha1
kind: TieredJob
metadata: {{name: {name}, namespace: tests}}
spec:
  tiers:
  - {{name: spot-a, capacityTier: a, maxFailures: 1, provisionTimeout: 120s}}
  - {{name: spot-b, capacityTier: b, maxFailures: 3, provisionTimeout: 1s}}
  - {{name: on-demand, capacityTier: od, maxFailures: 1, provisionTimeout: 120s}}
  grace: 20s
  checkpoints: {{uri: checkpoints, interval: 10steps, keep: 3}}
  workload:
    ray:
      template:
        spec:
          entrypoint: python train.py
          rayClusterSpec: {{workerGroupSpecs: [{{groupName: workers, replicas: 1}}]}}
"""

WORLD = """\
pools:
  a: {capacityType: spot, nodes: 2, price: {perNodeHour: "0.42", onDemandPerNodeHour: "1.41"}}
  b: {capacityType: spot, nodes: 2, unavailable: [{from: 0s}]}
  od: {nodes: 2, price: {perNodeHour: "1.41"}}
"""


class RunSite:
    """The folder of a job, and the runners started for it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.state = folder / "state" / "tests" / name
        self.runners: list[subprocess.Popen[str]] = []

    def lay_out(self, *, total: int, pause: str = "0.05") -> None:
        """Write the files. The program waits in each step for the seconds that the expression `pause` gives."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / "train.py").write_text(PROGRAM.format(total=total, pause=pause))
        (self.folder / "job.yaml").write_text(JOB.format(name=self.name))
        (self.folder / "world.yaml").write_text(WORLD)

    def start(self, *more: str, world: bool = True) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "spotladder.cli.main", "run", "job.yaml"]
        command += ["--world", "world.yaml"] if world else []
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SPOTLADDER_")}
        runner = subprocess.Popen(
            [*command, "--state-dir", str(self.folder / "state"), *more],
            cwd=self.folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.runners.append(runner)
        return runner

    def end(self, runner: subprocess.Popen[str], seconds: float = 900) -> tuple[int, str]:
        said, _ = runner.communicate(timeout=seconds)
        return runner.returncode, said

    def saved(self) -> JobState:
        return load_state((self.state / "state.json").read_text())

    def records(self) -> tuple[Record, ...]:
        return read(self.state / "timeline.jsonl").records

    def mark(self) -> str:
        return str(json.loads((self.state / "run.json").read_text())["mark"])

    def until(self, met: Callable[[], bool], seconds: float = 600) -> None:
        deadline = time.monotonic() + seconds
        while not met():
            logs = [path.read_text()[-2000:] for path in self.state.glob("attempts/*/driver.log")]
            assert time.monotonic() < deadline, (self.records()[-8:], logs)
            time.sleep(0.05)

    def close(self) -> None:
        for runner in self.runners:
            if runner.poll() is None:
                runner.kill()
            runner.wait()
        if (self.state / "run.json").exists():
            self.until(lambda: members(self.mark(), set()) == [])
