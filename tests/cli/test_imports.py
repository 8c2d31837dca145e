"""Import time: modules that the package must not import at start."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from spotladder.cli.main import COMMANDS

HEAVY = (
    "ray",
    "kubernetes",
    "lightkube",
    "cdktn",
    "pandas",
    "numpy",
    "tensorflow",
    "torch",
    "jax",
    "pulumi",
    "obstore",
)
READS_YAML = ("pydantic", "ruamel")  # typer uses pydantic too, but only once a command is chosen

FORMULA = ["plan", "--formula", "--hours=5", "--spot-fraction=0.6", "--max-failures=5", "--overhead=0.2"]
LIGHT = [FORMULA, *([name, "--help"] for name, entry in COMMANDS.items() if find_spec(entry.module))]

EACH_COMMAND = f"""
from spotladder.cli.main import main
for arguments in {LIGHT!r}:
    before = set(sys.modules)
    main(arguments)
    loaded[" ".join(arguments)] = sorted({{name.partition(".")[0] for name in set(sys.modules) - before}})
"""


def loaded_by(program: str) -> dict[str, list[str]]:
    """The top-level modules that a fresh Python has after the program (by the key ""), and those that the program has
    added to `loaded`."""
    ends = """
loaded[""] = sorted({name.partition(".")[0] for name in sys.modules})
print("\\n" + json.dumps(loaded))
"""
    text = f"import json, sys\nloaded = {{}}\n{program}\n{ends}"
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=600, check=True)
    found: dict[str, list[str]] = json.loads(result.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "program", ["import spotladder.train", "from spotladder.cli.main import main; main(['--help'])"]
)
def test_importing_the_package_is_fast(program: str) -> None:
    loaded = set(loaded_by(program)[""])
    assert "spotladder" in loaded
    assert not loaded & {*HEAVY, *READS_YAML}


def test_no_command_loads_anything_heavy_before_it_works() -> None:
    """One process runs all commands: a heavy module is named with the first command that loads it."""
    loaded = loaded_by(EACH_COMMAND)
    assert {name: heavy for name, modules in loaded.items() if (heavy := set(modules) & {*HEAVY, "ruamel"})} == {}
    assert len(loaded) == len(LIGHT) + 1


def test_commands_that_read_no_file_do_not_load_its_models() -> None:
    modules = ("get", "report", "notify", "cluster.delete", "cluster.suspension")
    loaded = loaded_by("import " + ", ".join(f"spotladder.cli.{name}" for name in modules))
    assert not set(loaded[""]) & {*HEAVY, *READS_YAML, "aiohttp"}


def test_the_client_loads_no_command() -> None:
    loaded = set(loaded_by("import spotladder.client")[""])
    assert "aiohttp" in loaded
    assert not loaded & {*HEAVY, "typer", "rich"}


def test_the_probe_detects_loaded_modules() -> None:
    assert {"pydantic", "ruamel"} <= set(loaded_by("import spotladder.api.read, ruamel.yaml")[""])
