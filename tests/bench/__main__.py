"""`make bench`: runs every `bench_*.py` in its own process, and writes the results as JSON and to docs/benchmarks.md.

Arguments select benchmarks: `python -m tests.bench import log`. The page keeps the tables of the others.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from tests.bench.rows import Row, table

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUT = ROOT / ".bench"
PAGE = ROOT / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

See how fast spotladder is. `make bench` measures each figure together with a reference or a limit in the same run, and
writes this page. Absolute figures depend on the machine: compare the ratios.
"""


def main() -> int:
    OUT.mkdir(exist_ok=True)
    wanted = sys.argv[1:]
    failed = []
    for script in sorted(HERE.glob("bench_*.py")):
        name = script.stem.removeprefix("bench_")
        if wanted and name not in wanted:
            continue
        print(f"--- {name}", flush=True)
        command = [sys.executable, "-m", f"tests.bench.{script.stem}", "--json", str(OUT / f"{name}.json")]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            failed.append(name)
    sections = []
    for result in sorted(OUT.glob("*.json")):
        found = json.loads(result.read_text())
        sections.append(f"## {found['title']}\n\n{table([Row(**row) for row in found['rows']])}")
    system = f"{platform.system()} {platform.machine()} with {os.cpu_count()} processors"
    machine = f"Measured with Python {platform.python_version()} on {system}.\n"
    PAGE.write_text("\n".join([HEAD, machine, *sections]))
    print(f"written to {PAGE.relative_to(ROOT)}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
