"""`make mutation`: runs mutation tests of one part of the code, and lists the undetected mutants. `PART` is a key of
`PARTS`, `SAMPLE` the number of mutants, `SEED` selects them.

The tool expects sources below `src`, so it works on a copy. Only quick tests run against a mutant. Longer tests may
detect more, so the printed share is a lower bound.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / ".mutation"
TOOL = "mutmut==3.8.1"


@dataclass(frozen=True)
class Part:
    """The sources that are mutated, and the tests that run against each mutant: those that need less than a minute."""

    targets: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def settings(self) -> str:
        """The settings of the tool."""
        return f"""
[tool.mutmut]
source_paths = ["src"]
only_mutate = {[f"src/spotladder/{target}.py" for target in self.targets]}
also_copy = ["tests", "docs", "charts", "examples"]
pytest_add_cli_args = {["-k", SLOW, "-m", "not ray", "-p", "no:cacheprovider", *ENDLESS]}
pytest_add_cli_args_test_selection = {list(self.tests)}
use_git_change_detection = false
timeout_multiplier = {NEVER}
"""


SLOW = "not TestS3 and not TestGoogle and not interleaving and not only_the_standard_library and not third_kind"

ENDLESS = ("--timeout=120", "--timeout-method=thread")
"""Such a test detects the mutant. The thread ends the mutant's process, whereas an exception in the test would wait for
tasks that the mutant keeps alive."""

NEVER = 1e6
"""Multiplier of the tool's own time limit, which must not expire: the tool then sends a signal to the process id of the
mutant, also when that process has ended and another program has its id."""

LOG = ("log", "entry_log", "entries", "history", "writer", "resume", "garbage", "removal")

PARTS = {
    "core": Part(
        targets=("core/*", *(f"checkpoints/{name}" for name in LOG)),  # `*` matches subpackages, too
        tests=("tests/core", "tests/checkpoints", "tests/policies", "tests/sim/test_ticks.py"),
    ),
    "operator": Part(targets=("operator/*",), tests=("tests/operator", "tests/conformance")),
}


def main(part: Part, sample: int, seed: int) -> int:
    """Run a sample. Returns 1 if less than nine in ten mutants are detected."""
    lay_out(part)
    chosen = random.Random(seed).sample(names := mutants(), min(sample, len(names)))
    print(f"{len(chosen)} of {len(names)} mutants, seed {seed}", flush=True)
    mutmut("run", "--max-children", "1", *chosen)
    results = dict(re.findall(r"^\s+(\S+): (\w[\w ]*)$", mutmut("results", "--all", "true"), re.MULTILINE))
    if not set(results.values()) - {"not checked"}:
        print(f"no mutant was run: the tests fail without mutants; see {PLACE / 'log'}")
        return 2
    survivors = [name for name in chosen if results.get(name) not in ("killed", "timeout", "caught by type check")]
    for name in survivors:
        print(f"\n# {name}: {results.get(name)}\n{mutmut('show', name)}")
    share = 1 - len(survivors) / len(chosen)
    print(f"\ndetected: {len(chosen) - len(survivors)} of {len(chosen)}, {share:.1%} (seed {seed})")
    return 0 if share >= 0.9 else 1


def lay_out(part: Part) -> None:
    """Copy the sources and install the tool."""
    tool, copy = PLACE / "lib", PLACE / "copy"
    if not tool.exists():
        subprocess.run([sys.executable, "-m", "uv", "pip", "install", "-q", "--target", str(tool), TOOL], check=True)
    shutil.rmtree(copy, ignore_errors=True)
    leave = shutil.ignore_patterns("__pycache__")
    for source, target in (("controller", "src"), *((name, name) for name in ("tests", "docs", "charts", "examples"))):
        shutil.copytree(ROOT / source, copy / target, ignore=leave)
    worlds = copy / "tests/core/world_invariants.py"
    worlds.write_text(re.sub(r"examples\(\d+\)", "25", worlds.read_text()))
    (copy / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + part.settings)


def mutants() -> list[str]:
    """The names of all mutants. Running a name that does not exist generates them."""
    mutmut("run", "--max-children", "1", "no.such.change")
    made = (PLACE / "copy" / "mutants").rglob("*.py.meta")
    return sorted(name for meta in made for name in json.loads(meta.read_text())["exit_code_by_key"])


def mutmut(*arguments: str) -> str:
    environ = {**os.environ, "PYTHONPATH": str(PLACE / "lib"), "HYPOTHESIS_PROFILE": "ci"}
    command = [sys.executable, "-m", "mutmut", *arguments]
    done = subprocess.run(
        command,
        cwd=PLACE / "copy",
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    (PLACE / "log").open("a").write(done.stdout)
    return done.stdout


if __name__ == "__main__":
    given = os.environ.get
    sys.exit(main(PARTS[given("PART", "core")], int(given("SAMPLE", "400")), int(given("SEED", "1"))))
