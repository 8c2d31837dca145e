"""Import time: modules that the package must not import at start."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

from spotladder.cli.main import COMMANDS

HEAVY = {
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
    "ruamel",
    "aiohttp",
}
"""What no command loads before it works: not all of them are there after `pip install spotladder`."""

FORMULA = ["plan", "--formula", "--hours=5", "--spot-fraction=0.6", "--max-failures=5", "--overhead=0.2"]
LIGHT = [FORMULA, *([name, "--help"] for name, entry in COMMANDS.items() if find_spec(entry.module))]
WITHOUT_MODELS = ("get", "report", "notify", "cluster.delete", "cluster.suspension")
"""Commands that read no file, and so do not load its models."""

ONE_AFTER_THE_OTHER = f"""
import spotladder.train
note("the library")
from spotladder.cli.main import main
main(["--help"])
note("the help")
import {", ".join(f"spotladder.cli.{name}" for name in WITHOUT_MODELS)}
note("commands without models")
for arguments in {LIGHT!r}:
    main(arguments)
    note(" ".join(arguments))
"""


def loaded_by(program: str) -> dict[str, set[str]]:
    """The top-level modules that a fresh Python has loaded at each `note` of the program, by its name."""
    notes = """
import json, sys
loaded = {}
def note(name):
    loaded[name] = sorted({module.partition(".")[0] for module in sys.modules})
"""
    text = f'{notes}\n{program}\nprint("\\n" + json.dumps(loaded))'
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=600, check=True)
    return {name: set(modules) for name, modules in json.loads(result.stdout.splitlines()[-1]).items()}


def test_nothing_heavy_is_loaded_before_a_command_works() -> None:
    """One process runs all commands: a heavy module is named first with the command that loads it."""
    loaded = loaded_by(ONE_AFTER_THE_OTHER)
    assert {name: heavy for name, modules in loaded.items() if (heavy := modules & HEAVY)} == {}
    assert len(loaded) == len(LIGHT) + 3
    assert "spotladder" in loaded["the library"]
    # typer uses pydantic too, but only once a command is chosen
    assert "pydantic" not in loaded["commands without models"]


def test_the_client_loads_no_command() -> None:
    loaded = loaded_by('import spotladder.client\nnote("")')[""]
    assert "aiohttp" in loaded
    assert not loaded & {*HEAVY - {"aiohttp", "ruamel"}, "typer", "rich"}
