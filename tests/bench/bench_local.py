"""Time from an eviction to the next attempt with the local runner: a job with two workers on a local Ray cluster
loses a node, without and with notice."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spotladder.core.reasons import Cause
from spotladder.records.model import Launched, NodeChange, NodeChanged, Record
from spotladder.records.timeline import read
from tests.bench import rows

JOB = """\
apiVersion: spotladder.io/v1alpha1
kind: TieredJob
metadata: {name: reaction}
spec:
  tiers:
  - {name: spot, capacityTier: spot, maxFailures: 0, provisionTimeout: 5m}
  - {name: on-demand, capacityTier: od, provisionTimeout: 5m}
  checkpoints: {uri: checkpoints, interval: 10steps}
  workload: {ray: {template: {spec: {
    entrypoint: python train.py, rayClusterSpec: {workerGroupSpecs: [{groupName: workers, replicas: 2}]}}}}}
"""
WORLD = """\
pools:
  spot: {capacityType: spot, nodes: 2, notice: %s, interruptions: {atSteps: [300]}}
  od: {nodes: 2}
"""
PROGRAM = """\
import time
from spotladder import train
job = train.current()
start = 0
with job.resume() as found:
    start = found.step if found else 0
for step in job.steps(start, 400):
    time.sleep(0.1)
    if job.should_commit(step):
        with job.commit(step) as folder:
            (folder / "step").write_text(str(step))
"""


def run(notice: str) -> Sequence[Record]:
    """The timeline records of a run that loses a node at step 300 and ends on the next tier."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, text in {"job.yaml": JOB, "world.yaml": WORLD % notice, "train.py": PROGRAM}.items():
            (folder / name).write_text(text)
        command = [sys.executable, "-m", "spotladder.cli.main", "run", "job.yaml", "--world", "world.yaml"]
        environ = {**os.environ, "SPOTLADDER_STATE": str(folder / "state")}
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        return read(folder / "state" / "default" / "reaction" / "timeline.jsonl").records


def measure() -> list[rows.Row]:
    """The reaction with and without notice."""
    found = []
    for notice, name in (("0s", "node lost without notice"), ("10s", "node lost with notice")):
        records = run(notice)
        sign = NodeChange.GONE if notice == "0s" else NodeChange.NOTICED
        lost = next(
            record.at
            for record in records
            if isinstance(record, NodeChanged) and record.change is sign and record.cause is Cause.INTERRUPTION
        )
        launched = next(record.at for record in records if isinstance(record, Launched) and record.attempt == 2)
        found.append(rows.limited(f"{name} → next attempt launched", launched - lost, "s", 1.0))
    return found


if __name__ == "__main__":
    rows.main(measure, "Local runner: reaction to an eviction")
