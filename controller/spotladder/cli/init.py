"""`spotladder init`: writes the files of a job beside an existing script."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from spotladder.errors import EnvironmentFailure, Refused


def init(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="The training script.")] = Path("train.py"),
) -> None:
    """Write job.yaml, world.yaml and a test of the recovery beside a training script.

    The script is parsed, and neither run nor changed. The lines to change, if any, are printed with their numbers.
    Existing files are never overwritten.

    \b
    Examples:
      spotladder init
      spotladder init src/finetune.py
    """
    from spotladder.conversion.script import script_of
    from spotladder.conversion.starter import advice, files_for

    found = script_of(script)
    files = {script.parent / name: text for name, text in files_for(found).items()}
    if existing := [str(file) for file in files if file.exists()]:
        raise Refused(f"{', '.join(existing)}: init does not overwrite files: rename or remove them")
    for file, text in files.items():
        try:
            with file.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            raise EnvironmentFailure(f"{file} cannot be written: {error.strerror}") from None
        typer.echo(f"wrote {file}")
    for line in advice(found):
        typer.echo(line)
    job, world, _ = (shlex.quote(str(file)) for file in files)
    typer.echo(f"next: spotladder run {job} --world {world}")
