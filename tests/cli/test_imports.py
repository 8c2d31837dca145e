"""Import time: modules that the package must not import at start."""

from __future__ import annotations

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
)
ONLY_WITH_A_STORE = "obstore"
READS_YAML = ("pydantic", "ruamel")  # typer uses pydantic too, but only once a command is chosen

RUN = "from spotladder.cli.main import main; main({0!r})"
FORMULA = ["plan", "--formula", "--hours=5", "--spot-fraction=0.6", "--max-failures=5", "--overhead=0.2"]
LIGHTEST = {"import spotladder.train": "import spotladder.train", "spotladder --help": RUN.format(["--help"])}
LIGHT = {
    "spotladder plan --formula": RUN.format(FORMULA),
    **{
        f"spotladder {name} --help": RUN.format([name, "--help"])
        for name, entry in COMMANDS.items()
        if find_spec(entry.module)
    },
}


def loaded_by(program: str) -> set[str]:
    """The top-level modules that a fresh Python has loaded after the program."""
    text = f"{program}\nimport sys\nprint('\\n' + ' '.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=600, check=True)
    return {module.partition(".")[0] for module in result.stdout.splitlines()[-1].split()}


@pytest.mark.parametrize("name", LIGHTEST)
def test_importing_the_package_is_fast(name: str) -> None:
    loaded = loaded_by(LIGHTEST[name])
    assert "spotladder" in loaded
    assert not loaded & {*HEAVY, *READS_YAML, ONLY_WITH_A_STORE}


@pytest.mark.parametrize("name", LIGHT)
def test_a_command_loads_nothing_heavy_before_it_works(name: str) -> None:
    loaded = loaded_by(LIGHT[name])
    assert "spotladder" in loaded
    assert not loaded & {*HEAVY, "ruamel", ONLY_WITH_A_STORE}


def test_the_probe_detects_loaded_modules() -> None:
    assert {"pydantic", "ruamel"} <= loaded_by("import spotladder.api.read, ruamel.yaml")
