"""The commands of Terraform on the stack of one cluster."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spotladder.errors import EnvironmentFailure
from spotladder_infra.outputs import NAME
from spotladder_infra.terraform import process
from spotladder_infra.terraform.events import Diagnostic, Event, Planned, parse, parse_text
from spotladder_infra.terraform.failures import explain
from spotladder_infra.terraform.imports import import_steps
from spotladder_infra.terraform.tool import Tool

LOCK_TIMEOUT = "10s"
"""Time that Terraform waits for the lock of the state."""

PLAN = "tfplan"
LOCK_FILE = ".terraform.lock.hcl"

OnLine = Callable[[str], None]
"""Called with each line of text that Terraform prints, except errors."""


class TerraformFailed(EnvironmentFailure):
    """A command failed. The message has one line for each error."""


class TerraformInterrupted(EnvironmentFailure):
    """The user stopped a command. Terraform has written its state unless it was killed."""

    exit_code = 130


@dataclass(frozen=True, slots=True)
class TerraformStack:
    """A stack that was written to `folder`. Commands raise TerraformFailed and TerraformInterrupted.

    Args:
        lock_file: The file with the providers' versions beside the fleet's state, so that all stacks of a cloud use the
            same versions.
        on_interrupt: Called when a running command was asked to stop.
    """

    tool: Tool
    folder: Path
    cluster: str
    environment: Mapping[str, str]
    lock_file: Path | None = None
    on_interrupt: Callable[[], None] | None = None

    def init(self) -> None:
        """Installs providers and connects to the state. Idempotent."""
        own = self.folder / LOCK_FILE
        if self.lock_file is not None and self.lock_file.exists() and not own.exists():
            own.write_bytes(self.lock_file.read_bytes())
        self._text("init", "-no-color", "-reconfigure")
        if self.lock_file is not None and own.exists():
            self.lock_file.parent.mkdir(parents=True, exist_ok=True)
            self.lock_file.write_bytes(own.read_bytes())

    def plan(self, *, destroy: bool = False) -> list[Planned]:
        """Compares the stack with the cloud, and stores the plan for `apply`. Returns the planned changes."""
        arguments = [f"-out={PLAN}", f"-lock-timeout={LOCK_TIMEOUT}", *(["-destroy"] if destroy else [])]
        events = self._streamed("plan", *arguments)
        return [event for event in events if isinstance(event, Planned)]

    def apply(self, on_line: OnLine | None = None) -> None:
        """Applies the stored plan and removes it."""
        try:
            self._streamed("apply", f"-lock-timeout={LOCK_TIMEOUT}", PLAN, on_line=on_line)
        finally:
            self.drop_plan()

    def drop_plan(self) -> None:
        """Removes the stored plan."""
        (self.folder / PLAN).unlink(missing_ok=True)

    def output(self) -> object:
        """The outputs for the platform layer as Terraform returns them; None before the first apply."""
        found = json.loads(self._text("output", "-json", "-no-color"))
        return found[NAME]["value"] if NAME in found else None

    def ids(self) -> dict[str, str]:
        """The id of each resource in the state, by address; none before the first apply."""
        state = json.loads(self._text("state", "pull").strip() or "{}")
        return {
            f"{entry['type']}.{entry['name']}": str(entry["instances"][0]["attributes"]["id"])
            for entry in state.get("resources", [])
            if entry["mode"] == "managed" and entry["instances"]
        }

    def forget(self, addresses: Sequence[str]) -> None:
        """Removes resources from the state; they stay in the cloud."""
        if addresses:
            self._text("state", "rm", f"-lock-timeout={LOCK_TIMEOUT}", *addresses)

    def command(self, *words: str) -> str:
        """The command line of Terraform on this stack, as a user types it."""
        return shlex.join([Path(self.tool.path).name, f"-chdir={self.folder}", *words])

    def import_command(self, address: str) -> str:
        """The command that imports the existing resource of this name. The user replaces words in capitals."""
        stack = json.loads((self.folder / "cdk.tf.json").read_text(encoding="utf-8"))
        return " && ".join(self.command(*words) for words in import_steps(address, stack, self.cluster))

    def _text(self, command: str, *arguments: str) -> str:
        ended = process.run(
            [self.tool.path, command, *arguments], self.folder, self.environment, on_interrupt=self.on_interrupt
        )
        if ended.code != 0:
            self._fail(command, ended, parse_text(ended.errors) or parse_text(ended.output))
        return ended.output

    def _streamed(self, command: str, *arguments: str, on_line: OnLine | None = None) -> list[Event]:
        events: list[Event] = []

        def take(line: str) -> None:
            event = parse(line)
            events.append(event)
            if on_line is not None and isinstance(event, str) and event:
                on_line(event)

        ended = process.run(
            [self.tool.path, command, "-json", "-input=false", *arguments],
            self.folder,
            self.environment,
            on_line=take,
            on_interrupt=self.on_interrupt,
        )
        if ended.code != 0:
            found = [event for event in events if isinstance(event, Diagnostic) and event.severity == "error"]
            text = "\n".join(event for event in events if isinstance(event, str))
            self._fail(command, ended, found or parse_text(f"{text}\n{ended.errors}"))
        return events

    def _fail(self, command: str, ended: process.CommandResult, diagnostics: list[Diagnostic]) -> None:
        if ended.interrupted:
            killed = " before it could write its state" if ended.code < 0 else ""
            raise TerraformInterrupted(
                f"cluster {self.cluster}: {command} was interrupted{killed}: run the same command again to continue"
            )
        locks = [path for path in (self.lock_file, self.folder / LOCK_FILE) if path is not None]
        lines = explain(
            self.cluster,
            diagnostics,
            unlock=self.command("force-unlock"),
            lock_file=" and ".join(map(str, locks)),
            import_command=self.import_command,
        )
        if not lines:
            last = (ended.errors or ended.output).strip().splitlines()[-1:] or [f"exit code {ended.code}"]
            lines = [f"cluster {self.cluster}: {self.tool.product} {command} failed: {last[0]}"]
        raise TerraformFailed("\n".join(lines))
