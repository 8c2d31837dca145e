"""`spotladder demo`: trains a small model on this machine while its simulated spot nodes are taken away."""

from __future__ import annotations

import shutil
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from spotladder.cli.run import run
from spotladder.errors import EnvironmentFailure

FOLDER = Path("spotladder-demo")
"""Folder for the files of the demo, in the current directory."""

FILES = ("job.yaml", "world.yaml", "train.py")

_PACKAGE = Path(__file__).parents[1]


class Framework(StrEnum):
    """The framework of the program. The value is also the name of its module."""

    TENSORFLOW = "tensorflow"
    TORCH = "torch"
    JAX = "jax"


_EXAMPLES = {
    Framework.TENSORFLOW: "digits-tensorflow",
    Framework.TORCH: "digits-pytorch",
    Framework.JAX: "digits-jax",
}


def demo(
    *,
    framework: Annotated[Framework, typer.Option(help="Framework of the program.")] = Framework.TENSORFLOW,
) -> None:
    """Train a small model on this machine while its simulated spot nodes are taken away.

    Writes job, world and program into ./spotladder-demo and runs them there. The report is in spotladder-demo/report.

    \b
    Examples:
      spotladder demo
      spotladder demo --framework torch
    """
    missing = [name for name in ("ray", "sklearn", framework) if find_spec(name) is None]
    if missing:
        extra = "demo" if framework is Framework.TENSORFLOW else f"demo,{framework}"
        raise EnvironmentFailure(
            f"the demo needs {', '.join(missing)}: pip install 'spotladder[{extra}]', or without an installation "
            f"uvx --from 'spotladder[{extra}]' spotladder demo --framework {framework}"
        )
    source = files_of(framework)
    try:
        FOLDER.mkdir(exist_ok=True)
        for name in FILES:
            shutil.copyfile(source / name, FOLDER / name)
    except OSError as error:
        raise EnvironmentFailure(f"{FOLDER}: cannot be written: {error.strerror}; use another folder") from None
    run([str(FOLDER / "job.yaml")], world=FOLDER / "world.yaml", fresh=True, web=True, report=FOLDER / "report")


def files_of(framework: Framework) -> Path:
    """The folder with the files of a demo: in the installed package, otherwise in the checkout."""
    inside = _PACKAGE / "demo" / _EXAMPLES[framework]
    return inside if inside.is_dir() else _PACKAGE.parents[1] / "examples" / _EXAMPLES[framework]
