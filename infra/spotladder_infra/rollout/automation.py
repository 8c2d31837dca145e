"""Pulumi's Automation API without the calls of the program `pulumi` that a rollout does not need.

The Automation API runs `pulumi` four more times for each update: for its version, twice for the outputs of the stack,
and for the history. A rollout reads none of them, and each call takes up to half a second. A new stack costs two
calls: one that does not find it, and one that creates it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pulumi.automation import LocalWorkspace, ProjectSettings, PulumiCommand, Stack, UpdateSummary
from pulumi.automation._stack import StackInitMode  # the release of pulumi is pinned
from pulumi.automation.errors import InvalidVersionError

from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout.tools import NEEDED


class RolloutWorkspace(LocalWorkspace):
    """A workspace that creates a stack with the same call that selects it, and does not select one that `exists`."""

    exists = False

    def select_stack(self, stack_name: str) -> None:
        """Selects the stack, which is created if it does not exist. Raises CommandError."""
        if not self.exists:
            self._run_pulumi_cmd_sync(["stack", "select", "--create", "--stack", stack_name])


class RolloutStack(Stack):
    """A stack that asks for neither outputs nor history after an update."""

    def outputs(self) -> dict[str, Any]:
        """No outputs: the program of a rollout exports none."""
        return {}

    def info(self, show_secrets: bool = True) -> UpdateSummary:  # noqa: ARG002 – signature of Stack
        """A summary without the history. The Automation API calls this only after an update that succeeded."""
        return UpdateSummary("update", datetime.now(UTC), "", {}, {}, "succeeded")


def create_or_select(
    name: str,
    project: str,
    program: Callable[[], None],
    environment: Mapping[str, str],
    folder: Path,
    *,
    exists: bool = False,
) -> RolloutStack:
    """The stack `name`, created if it does not exist. `exists`: it does, so the state is not asked for it.

    Raises:
        CommandError: Pulumi cannot open the state.
        EnvironmentFailure: The program `pulumi` does not run or is too old.
    """
    workspace = RolloutWorkspace(
        work_dir=str(folder),
        program=program,
        env_vars=dict(environment),
        project_settings=ProjectSettings(name=project, runtime="python", main=str(Path.cwd())),
        pulumi_command=command(),
    )
    workspace.exists = exists
    return RolloutStack(name, workspace, StackInitMode.SELECT)


@cache
def command() -> PulumiCommand:
    """The program `pulumi`, which is asked for its version once. Raises EnvironmentFailure."""
    try:
        return PulumiCommand()
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"pulumi does not run ({error}): install it ({NEEDED['pulumi']})") from None
    except InvalidVersionError as error:
        raise EnvironmentFailure(f"pulumi cannot be used ({error}): install it ({NEEDED['pulumi']})") from None
