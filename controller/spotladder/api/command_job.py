"""The job and the world of a command that is run without a job file: `spotladder run -- python train.py`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from spotladder.api.check import checked
from spotladder.api.document import Document
from spotladder.api.tieredjob import TieredJob
from spotladder.api.world import World
from spotladder.errors import InvalidSpec

NOTICE = "10s"
"""The time from an eviction notice to the loss of the node."""

STEPS = "steps"

LONGEST_NAME = 40

_SCRIPT = (".py", ".sh")


def name_of(command: Sequence[str], folder: Path) -> str:
    """The name of the job that runs a command in this folder: that of the first script in the command with its folder,
    as jobs called `train` would replace each other, else that of the program."""
    script = next((word for word in command if word.endswith(_SCRIPT)), "")
    place = (folder / script).resolve().parent if script else folder.resolve()
    stem = _safe(Path(script or command[0]).stem) or "command"
    name = f"{_safe(place.name)[: max(0, LONGEST_NAME - len(stem) - 1)]}-{stem}".strip("-")
    return (name if name[0].isalpha() else f"job-{name}")[:LONGEST_NAME].strip("-")


def _safe(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def command_job(command: Sequence[str], name: str, checkpoints: Path, folder: str | None) -> TieredJob:
    """The job that runs the command in one process: on spot capacity, which it may lose twice, then on demand. `folder`
    is that of the program's own checkpoints. Raises InvalidSpec."""
    job = {
        "apiVersion": "spotladder.io/v1alpha1",
        "kind": "TieredJob",
        "metadata": {"name": name},
        "spec": {
            "tiers": [
                {"name": "spot", "capacityTier": "spot", "maxFailures": 2},
                {"name": "on-demand", "capacityTier": "on-demand", "maxFailures": -1},
            ],
            "checkpoints": {"uri": str(checkpoints), **({"programFolder": folder} if folder else {})},
            "workload": {
                "ray": {
                    "template": {
                        "spec": {
                            "entrypoint": shlex.join(command),
                            "rayClusterSpec": {"workerGroupSpecs": [{"groupName": "workers", "replicas": 1}]},
                        }
                    }
                }
            },
        },
    }
    return checked(Document("", job, {}, {}), TieredJob)


def command_world(evictions: Sequence[str]) -> World:
    """A spot pool that takes its node back at these times of the run or at these steps (`20steps`), and an on-demand
    pool. Raises InvalidSpec, also for a mixture."""
    steps = [text.removesuffix(STEPS) for text in evictions if text.endswith(STEPS)]
    if steps and len(steps) < len(evictions):
        raise InvalidSpec("name either times or steps, such as 60s or 20steps", path="--evict")
    taken = {"atSteps": [int(step) for step in steps]} if steps else {"at": list(evictions)}
    pool = {"nodes": 1, "provisionDelay": "1s"}
    world = {
        "pools": {
            "spot": {
                "capacityType": "spot",
                "notice": NOTICE,
                **pool,
                **({"interruptions": taken} if evictions else {}),
            },
            "on-demand": {"capacityType": "on-demand", **pool},
        }
    }
    return checked(Document("", world, {}, {}), World)
