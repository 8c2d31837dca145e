"""`spotladder crds`: prints the CustomResourceDefinitions for kubectl, GitOps and the chart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spotladder.api.crds import crds as definitions
from spotladder.api.yaml_text import as_yaml
from spotladder.cli.folders import to_folder
from spotladder.cli.output import Format, print_data
from spotladder.errors import EnvironmentFailure


def crds(
    to: Annotated[
        Path | None,
        to_folder("Write one file for each definition into this folder instead of printing."),
    ] = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="Output format: yaml or json.")] = Format.YAML,
) -> None:
    """Print the CustomResourceDefinitions of TieredJob and CapacityTier.

    \b
    Example:
      spotladder crds | kubectl apply --server-side -f -
    """
    if to is not None:
        for definition in definitions():
            _write(to / f"{definition['spec']['names']['plural']}.yaml", as_yaml(definition))
    elif output is Format.JSON:
        print_data({"apiVersion": "v1", "kind": "List", "items": definitions()}, output)
    else:
        typer.echo("---\n".join(as_yaml(definition) for definition in definitions()), nl=False)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EnvironmentFailure(
            f"{path}: cannot be written ({error.strerror}); name a writable folder with --to"
        ) from None
