"""Opens a stack with Pulumi's Automation API."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from pulumi.automation import LocalWorkspace, ProjectSettings, PulumiCommand, Stack
from pulumi.automation.errors import InvalidVersionError

from spotladder.errors import EnvironmentFailure
from spotladder_infra.programs import HOMES


def create_or_select(
    name: str, project: str, program: Callable[[], None], environment: Mapping[str, str], folder: Path
) -> Stack:
    """The stack `name`, created if it does not exist.

    Raises:
        CommandError: Pulumi cannot open the state.
        EnvironmentFailure: The program `pulumi` does not run or is too old.
    """
    workspace = LocalWorkspace(
        work_dir=str(folder),
        program=program,
        env_vars=dict(environment),
        project_settings=ProjectSettings(name=project, runtime="python", main=str(Path.cwd())),
        pulumi_command=command(),
    )
    return Stack.create_or_select(name, workspace)


@cache
def command() -> PulumiCommand:
    """The program `pulumi`, which is asked for its version once. Raises EnvironmentFailure."""
    try:
        return PulumiCommand()
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"pulumi does not run ({error}): install it ({HOMES['pulumi']})") from None
    except InvalidVersionError as error:
        raise EnvironmentFailure(f"pulumi cannot be used ({error}): install it ({HOMES['pulumi']})") from None
