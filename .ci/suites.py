"""Decides whether a suite of the checks needs to run, from a hash of its inputs.

    python .ci/suites.py passed kube   # exit 0 if the suite passed in full with exactly these inputs, 1 if not
    python .ci/suites.py record kube   # write the hash of its inputs to .ci/passed.json

A suite's inputs are the files of the working tree that its tests, or the code under test, read, the programs of the
cluster provider and the Python version. `record` is called after a suite has passed. Commit .ci/passed.json to
let later runs skip the suite until one of its inputs changes. `make test` is never skipped.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = ROOT / ".ci" / "passed.json"

SHARED_INPUTS = (
    ".ci/run",
    "Makefile",
    "constraints.txt",
    "pyproject.toml",
    "tests/__init__.py",
    "tests/absent.py",
    "tests/conftest.py",
    "tests/waiting.py",
)
"""Inputs of every suite."""

KUBE_SUPPORT = (
    "tests/kube/[!t]*.py",
    "tests/kube/test_chart.py",
    "tests/kube/test_clusters.py",
    "tests/kube/test_preflight.py",
)
"""The modules of the kube suite that other suites import, directly or indirectly: of its tests only these."""

SUITES: dict[str, tuple[str, ...]] = {
    "stores": (
        "controller/spotladder/backoff.py",
        "controller/spotladder/checkpoints",
        "controller/spotladder/core",
        "controller/spotladder/errors.py",
        "controller/spotladder/exit_code.py",
        "tests/checkpoints",
        "tests/stores",
    ),
    "frameworks": ("controller", "examples", "tests/examples", "tests/frameworks", "tests/train"),
    "ray": (
        "controller",
        "tests/local",
        "tests/train",
    ),
    "infra": (
        "charts",
        "controller",
        "docs/destroy.md",
        "docs/eks.md",
        "docs/rollout.md",
        "docs/upgrade.md",
        "examples",
        "infra",
        "tests/charts",
        "tests/checkpoints/builders.py",
        "tests/checkpoints/gcs.py",
        "tests/cli/terminal.py",
        "tests/docs/markdown.py",
        "tests/e2e",
        "tests/infra",
        *KUBE_SUPPORT,
        "tests/topology",
    ),
    "kube": (
        "charts",
        "controller",
        "tests/bench/__init__.py",
        "tests/bench/bare.py",
        "tests/bench/bench_idle.py",
        "tests/bench/bench_scale.py",
        "tests/bench/clones.py",
        "tests/bench/crowd.py",
        "tests/bench/rows.py",
        "tests/charts",
        "tests/checkpoints/builders.py",
        "tests/cli/terminal.py",
        "tests/golden",
        "tests/kube",
        "tests/workloads",
    ),
    "e2e": (
        "charts",
        "controller",
        "examples",
        "infra",
        "tests/charts",
        "tests/checkpoints/builders.py",
        "tests/e2e",
        *KUBE_SUPPORT,
        "tests/workloads",
    ),
}
"""The files and folders, relative to the repository root, that each suite reads beside SHARED_INPUTS."""

FORECASTS = (
    "controller/spotladder/cli/forecast.py",
    "controller/spotladder/cli/plan.py",
    "controller/spotladder/cli/plan_options.py",
    "controller/spotladder/cli/replay.py",
    "controller/spotladder/cli/simulate.py",
    "controller/spotladder/cli/simulate_options.py",
    "controller/spotladder/cli/simulation.py",
    "controller/spotladder/cli/tier_facts.py",
    "controller/spotladder/cli/trace.py",
    "controller/spotladder/cli/what_if.py",
    "controller/spotladder/planner",
    "controller/spotladder/sim",
)
"""The simulator, the planner and their commands. They are inputs of no suite: no other module may import them (see
`tool.importlinter` in pyproject.toml), and `make test` has their tests. One test of the kube suite runs
`spotladder plan`, for the modules that read a cluster, which are inputs."""

NEEDS_PROVIDER = frozenset({"infra", "kube", "e2e"})
"""Suites that run programs of the cluster provider."""


def inputs(suite: str) -> list[Path]:
    """The files whose content the suite depends on: tracked ones and new ones that git does not ignore."""
    left_out = [f":(exclude){path}" for path in FORECASTS]
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard", "--", *SHARED_INPUTS, *SUITES[suite], *left_out]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted({ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()})


def digest(suite: str) -> str:
    """SHA-256 over the suite's inputs, their paths included."""
    tool = os.environ.get("SPOTLADDER_CLUSTER_TOOL", "")
    files = sorted(Path(tool).parent.glob("*")) if suite in NEEDS_PROVIDER and tool else []
    provider = [path for path in files if path.suffix != ".md"]
    total = hashlib.sha256(f"python {sys.version_info[0]}.{sys.version_info[1]}\0".encode())
    for name, path in [*_named(inputs(suite), ROOT), *_named(provider, Path(tool).parent)]:
        total.update(f"{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def passed(suite: str) -> bool:
    """Whether the suite is recorded to have passed with its present inputs. Prints why it is skipped."""
    known = _read().get(suite, {})
    if known.get("inputs") != digest(suite):
        return False
    print(f"=== {suite} skipped: it passed in full on {known['date']} with the same inputs ({known['inputs'][:12]})")
    return True


def record(suite: str) -> None:
    """Write down that the suite has passed with its present inputs."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    entries = {**_read(), suite: {"inputs": digest(suite), "date": today}}
    RECORD.write_text(json.dumps(entries, indent=2, sort_keys=True) + "\n")


def _read() -> dict[str, dict[str, str]]:
    if not RECORD.exists():
        return {}
    entries: dict[str, dict[str, str]] = json.loads(RECORD.read_text())
    return entries


def _named(paths: Iterable[Path], root: Path) -> list[tuple[str, Path]]:
    return [(str(path.relative_to(root)), path) for path in paths if path.is_file()]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["passed", suite] if suite in SUITES:
            sys.exit(0 if passed(suite) else 1)
        case ["record", suite] if suite in SUITES:
            record(suite)
        case _:
            sys.exit(f"usage: suites.py passed|record {'|'.join(SUITES)}")
