"""`spotladder schema`: prints the JSON schema of job files, for editors."""

from __future__ import annotations

from spotladder.api.editor_schema import schema as of_files
from spotladder.cli.output import Format, print_data


def schema() -> None:
    """Print the JSON schema of files with TieredJobs and CapacityTiers.

    \b
    Example:
      spotladder schema > spotladder.schema.json
    """
    print_data(of_files(), Format.JSON)
