"""Time to validate a fleet file and to synthesize its stacks, compared with bare Python and with importing the
bindings.

Each measurement is a new process, as for users. The reference imports, in one process, the binding modules of both
clouds that the stacks use.
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
IMPORT = "from spotladder_infra.stacks.node import chosen\nwith chosen(): import {}"
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
    """Run the program in a new Python; returns the wall-clock seconds."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=True, env=os.environ)
    return time.perf_counter() - started


def measure() -> Sequence[Row]:
    """The fastest of interleaved runs, because other load on the machine only adds time. The first run warms the
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
            name="`spotladder infra validate`",
            measured=found["validate"],
            unit="s",
            compared_with="bare Python",
            reference=found["bare"],
            goal=f"≤ {MOST_VALIDATE} s",
            met=found["validate"] <= MOST_VALIDATE,
        ),
        Row(
            name="`spotladder infra synth`, both clouds",
            measured=found["synth"],
            unit="s",
            compared_with="import of the bindings",
            reference=found["import"],
            goal=f"≤ {MOST_SYNTH:.0f} s and ≤ {MOST_RATIO:.0f} ×",
            met=found["synth"] <= min(MOST_SYNTH, MOST_RATIO * found["import"]),
        ),
    ]


if __name__ == "__main__":
    main(measure, "Infrastructure")
