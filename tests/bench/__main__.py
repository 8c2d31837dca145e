"""`make bench`: runs every `bench_*.py` in its own process, and writes results as JSON and to tests/bench/results.md.

Arguments select benchmarks: `python -m tests.bench plan log`. The page keeps the tables of the others. A benchmark on
real nodes can measure a part: `python -m tests.bench losses --only "power cut*"`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.bench.rows import Row, table

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUT = ROOT / ".bench"
PAGE = HERE / "results.md"
IMAGES = ROOT / "docs" / "images"

HEAD = """# Results of the benchmarks

`make bench` measures each figure together with a reference or a limit in the same run, and writes this file. Absolute
figures depend on the machine: compare the ratios. The file has the figures with a goal or a reference; `.bench` has all
of them. docs/benchmarks.md has the summary.
"""


def main(argv: list[str] | None = None) -> int:
    scripts = {script.stem.removeprefix("bench_"): script for script in sorted(HERE.glob("bench_*.py"))}
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these benchmarks, of {', '.join(scripts)}")
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="only these parts of NAME")
    arguments = parser.parse_args(argv)
    wanted = arguments.names
    options = [f"--only={part}" for part in arguments.only]
    if options and len(wanted) != 1:
        parser.error("--only needs exactly one benchmark")
    if unknown := [name for name in wanted if name not in scripts]:
        parser.error(f"no benchmark is called {unknown[0]} (expected {', '.join(scripts)})")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    OUT.mkdir(exist_ok=True)
    failed = []
    for name in wanted or scripts:
        script = scripts[name]
        print(f"--- {name}", flush=True)
        command = [sys.executable, "-m", f"tests.bench.{script.stem}", "--json", str(OUT / f"{name}.json")]
        try:
            if ended([*command, *options]):
                failed.append(name)
        except KeyboardInterrupt:
            failed.append(f"{name} (interrupted)")
            break
    sections = kept(PAGE.read_text()) if PAGE.exists() else {}
    for result in sorted(OUT.glob("*.json")):
        found, picture = json.loads(result.read_text()), result.with_suffix(".svg")
        sections[found["title"]] = section(found, embedded(picture, found["title"]) if picture.exists() else "")
    system = f"{platform.system()} {platform.machine()} with {os.cpu_count()} processors"
    machine = f"Measured with Python {platform.python_version()} on {system}.\n"
    texts = [f"## {title}\n\n{text}" for title, text in sections.items()]
    PAGE.write_text("\n".join([HEAD, machine, *texts]))
    print(f"written to {PAGE.relative_to(ROOT)}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def ended(command: list[str]) -> int:
    """The exit code of a benchmark. Ctrl-C and SIGTERM reach it once, through this process: it removes its clusters
    before it ends."""
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGTERM)
        process.wait()
        raise


def section(found: dict[str, Any], picture: str = "") -> str:
    """The picture, the note and the table of a benchmark's result, with the figures that have a goal or a reference."""
    rows = [row for row in (Row(**row) for row in found["rows"]) if row.is_judged]
    return "\n\n".join(filter(None, (picture, found.get("note"), table(rows))))


def kept(page: str) -> dict[str, str]:
    """The sections of the page by their titles, without those titles."""
    parts = [part.split("\n", 1) for part in f"\n{page}".split("\n## ")[1:]]
    return {title: text.strip("\n") + "\n" for title, text in parts}


def embedded(picture: Path, title: str) -> str:
    """The picture, copied beside the page, in Markdown."""
    copy = IMAGES / f"bench-{picture.name}"
    shutil.copy(picture, copy)
    return f"![{title}]({os.path.relpath(copy, PAGE.parent)})"


if __name__ == "__main__":
    sys.exit(main())
