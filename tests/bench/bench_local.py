"""Time from an eviction to the next attempt with the local runner, and time to start Ray.

A job with two workers on a local Ray cluster loses a node, without and with notice. The reference is the time to start
the same Ray nodes on the idle machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from spotladder.core.reasons import Cause
from spotladder.local.nodes import Head, NodeSettings, RayNode, Worker
from spotladder.local.reaper import Reaper
from spotladder.local.scratch import new_scratch
from spotladder.records.model import Beat, DriverExited, DriverStarted, Launched, NodeChange, NodeChanged, Record
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


def starts() -> tuple[float, float]:
    """Seconds to start a Ray head, and to start two workers together, on the idle machine."""
    with tempfile.TemporaryDirectory() as place:
        scratch = new_scratch(mark := uuid.uuid4().hex)
        reaper = Reaper(mark, scratch.path, scratch.lock)
        try:
            machine = NodeSettings(mark, scratch.path, Path(place), Path(place), reaper, 80 * 1024**2)
            head = Head("h1", machine)
            for_head = _until_up(head)
            labels = {"spotladder.io/tier": "spot"}
            workers = [Worker(f"n{n}", machine, head.address, cpus=1, labels=labels, drain=0) for n in (1, 2)]
            return for_head, _until_up(*workers)
        finally:
            reaper.close()
            scratch.close()


def _until_up(*nodes: RayNode) -> float:
    began = time.monotonic()
    while not all(node.up for node in nodes):
        if why := next((why for node in nodes if (why := node.failed())), None):
            raise SystemExit(why)
        time.sleep(0.02)
    return time.monotonic() - began


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
    """Reaction and resume times with and without notice, compared with the start of the nodes alone."""
    for_head, for_workers = starts()
    found = [rows.limited("start of a Ray head", for_head, "s", 10.0)]
    found.append(rows.limited("start of 2 Ray workers", for_workers, "s", 10.0))
    for notice, name in (("0s", "node lost without notice"), ("10s", "node lost with notice")):
        records = run(notice)
        signs = (NodeChange.GONE if notice == "0s" else NodeChange.NOTICED,)
        lost = next(
            record.at
            for record in records
            if isinstance(record, NodeChanged) and record.change in signs and record.cause is Cause.INTERRUPTION
        )
        launched = next(record.at for record in records if isinstance(record, Launched) and record.attempt == 2)
        started = next(record.at for record in records if isinstance(record, DriverStarted) and record.attempt == 2)
        moved = next(record.at for record in records if isinstance(record, Beat) and record.attempt == 2)
        exited = [record.at for record in records if isinstance(record, DriverExited) and record.attempt == 1]
        found.append(rows.limited(f"{name} → next attempt launched", launched - lost, "s", 1.0))
        if exited and notice != "0s":
            found.append(rows.Row(f"{name} → committed and stopped", exited[0] - lost, "s", "notice", 10.0))
        found.append(
            rows.Row(f"{name} → next program's process", started - lost, "s", "start of 2 Ray workers", for_workers)
        )
        found.append(rows.Row(f"{name} → first new step", moved - lost, "s", "start of 2 Ray workers", for_workers))
    return found


if __name__ == "__main__":
    rows.main(measure, "Local runner: reaction to an eviction")
