"""The time for the fleet file and its stacks: validation beside bare Python, synthesis beside importing the bindings.

Each measurement is a process of its own, as a user starts it. The bindings are imported as a program does that uses
them without this project: the modules of both clouds that the stacks need, in one process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.rows import Row, main

RUNS = 5
ROOT = Path(__file__).parents[2]
FLEET = ROOT / "examples" / "fleet" / "fleet.yaml"
MOST_VALIDATE = 0.6
MOST_SYNTH = 5.0
MOST_RATIO = 2.0

COMMAND = "from spotladder.cli.main import main; main({!r})"
IMPORT = "from spotladder_infra.stacks.node import choose; choose(); import {}"
AWS = (
    "cloudwatch_logs", "ec2", "eks", "eventbridge", "iam", "kms", "meta_data_sources", "provider", "s3", "sqs", "sts",
    "vpc",
)  # fmt: skip
GOOGLE = (
    "compute_network", "compute_router", "compute_router_nat", "compute_subnetwork", "container_cluster",
    "container_node_pool", "data_google_project", "project_iam_member", "provider", "service_account",
    "storage_bucket", "storage_bucket_iam_member",
)  # fmt: skip


def seconds(program: str) -> float:
    """One start of Python with the program, wall clock."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=True, env=os.environ)
    return time.perf_counter() - started


def measure() -> Sequence[Row]:
    """The fastest of runs that take turns, since the machine has other work as well; one run before them warms the
    caches."""
    modules = [*(f"cdktn_aws.{name}" for name in AWS), *(f"cdktn_provider_google.{name}" for name in GOOGLE)]
    with tempfile.TemporaryDirectory() as folder:
        programs = {
            "bare": "pass",
            "validate": COMMAND.format(["infra", "validate", "--fleet", str(FLEET)]),
            "import": IMPORT.format(", ".join(modules)),
            "synth": COMMAND.format(["infra", "synth", "--fleet", str(FLEET), "--to", folder]),
        }
        times: dict[str, list[float]] = {name: [] for name in programs}
        for run in range(RUNS + 1):
            for name, program in programs.items():
                took = seconds(program)
                if run:
                    times[name].append(took)
    found = {name: min(values) for name, values in times.items()}
    return [
        Row(
            what="`spotladder infra validate`",
            measured=found["validate"],
            unit="s",
            beside="bare Python",
            peer=found["bare"],
            goal=f"≤ {MOST_VALIDATE} s",
            met=found["validate"] <= MOST_VALIDATE,
        ),
        Row(
            what="`spotladder infra synth`, both clouds",
            measured=found["synth"],
            unit="s",
            beside="import of the bindings",
            peer=found["import"],
            goal=f"≤ {MOST_SYNTH:.0f} s and ≤ {MOST_RATIO:.0f} ×",
            met=found["synth"] <= min(MOST_SYNTH, MOST_RATIO * found["import"]),
        ),
    ]


if __name__ == "__main__":
    main(measure, "Infrastructure")
