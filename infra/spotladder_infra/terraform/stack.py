"""The commands of Terraform on the stack of one cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from spotladder.errors import EnvironmentFailure
from spotladder_infra.outputs import NAME
from spotladder_infra.terraform import process, runs
from spotladder_infra.terraform.events import Diagnostic, Event, Finished, Planned, parse, parse_text
from spotladder_infra.terraform.failures import Kind, explain, kind_of, lock_of
from spotladder_infra.terraform.tool import Tool

LOCK_TIMEOUT = "10s"
"""How long Terraform waits for the lock of the state."""

PLAN = "tfplan"
IMPORTS = "adopt.tf.json"
LOCK_FILE = ".terraform.lock.hcl"

OnEvent = Callable[[Event], None]
Answer = TypeVar("Answer")


class TerraformFailed(EnvironmentFailure):
    """A command failed. The message has one line for each error."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class TerraformInterrupted(EnvironmentFailure):
    """The user stopped a command. Terraform has written its state unless it was killed."""

    exit_code = 130


@dataclass(frozen=True, slots=True)
class TerraformStack:
    """A stack that was written to `folder`. Commands raise TerraformFailed and TerraformInterrupted.

    Args:
        lock_file: The file with the providers' versions beside the fleet's state, so that all stacks of a cloud use the
            same versions.
        run_file: The file that records which process holds the state's lock. A lock whose process was killed is
            released.
        on_interrupt: Called when a running command was asked to stop.
    """

    tool: Tool
    folder: Path
    cluster: str
    environment: Mapping[str, str]
    lock_file: Path | None = None
    run_file: Path | None = None
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

    def plan(self, *, destroy: bool = False, targets: Sequence[str] = ()) -> list[Planned]:
        """Compares the stack with the cloud, and stores the plan for `apply`. Returns the planned changes."""
        arguments = [f"-out={PLAN}", f"-lock-timeout={LOCK_TIMEOUT}", *(["-destroy"] if destroy else [])]
        events = self._streamed("plan", *arguments, *(f"-target={target}" for target in targets))
        return [event for event in events if isinstance(event, Planned)]

    def take_over(self, found: Mapping[str, str]) -> None:
        """The next plan imports these resources: address → id."""
        blocks = [{"to": address, "id": identifier} for address, identifier in found.items()]
        (self.folder / IMPORTS).write_text(json.dumps({"import": blocks}, indent=1), encoding="utf-8")

    def apply(self, on_event: OnEvent | None = None) -> list[Finished]:
        """Applies the stored plan and removes it. Returns the changes."""
        try:
            events = self._streamed("apply", f"-lock-timeout={LOCK_TIMEOUT}", PLAN, on_event=on_event)
        finally:
            self.drop_plan()
        return [event for event in events if isinstance(event, Finished)]

    def drop_plan(self) -> None:
        """Removes the stored plan and its imports."""
        for name in (PLAN, IMPORTS):
            (self.folder / name).unlink(missing_ok=True)

    def output(self) -> object:
        """The outputs for the platform layer as Terraform returns them; None before the first apply."""
        found = json.loads(self._text("output", "-json", "-no-color"))
        return found[NAME]["value"] if NAME in found else None

    def addresses(self) -> list[str]:
        """The resources in the state."""
        try:
            listed = self._text("state", "list").split()
        except TerraformFailed as failed:
            if any("No state file was found" in entry.summary for entry in failed.diagnostics):
                return []  # nothing was ever applied
            raise
        return [address for address in listed if not address.startswith("data.") and ".data." not in address]

    def forget(self, addresses: Sequence[str]) -> None:
        """Removes resources from the state; they stay in the cloud."""
        if addresses:
            self._unlocking(lambda: self._text("state", "rm", f"-lock-timeout={LOCK_TIMEOUT}", *addresses))

    def unlock_command(self) -> str:
        """The command that releases a lock, without the lock's id."""
        return f"{Path(self.tool.path).name} -chdir={self.folder} force-unlock"

    def _text(self, command: str, *arguments: str) -> str:
        ended = process.run(
            [self.tool.path, command, *arguments], self.folder, self.environment, on_interrupt=self.on_interrupt
        )
        if ended.code != 0:
            self._fail(command, ended, parse_text(ended.errors) or parse_text(ended.output))
        return ended.output

    def _streamed(self, command: str, *arguments: str, on_event: OnEvent | None = None) -> list[Event]:
        return self._unlocking(lambda: self._once(command, *arguments, on_event=on_event))

    def _unlocking(self, command: Callable[[], Answer]) -> Answer:
        """Runs a command that takes the state's lock; a lock that a killed run of this machine left is released."""
        try:
            return command()
        except TerraformFailed as failed:
            locks = [lock_of(entry) for entry in failed.diagnostics if kind_of(entry) is Kind.LOCKED]
            if not locks or self.run_file is None or not runs.was_killed(self.run_file, locks[0]):
                raise
            self._text("force-unlock", "-force", locks[0].identifier)
        return command()

    def _once(self, command: str, *arguments: str, on_event: OnEvent | None) -> list[Event]:
        events: list[Event] = []
        noise: list[str] = []

        def take(line: str) -> None:
            event = parse(line)
            if event is None:
                if not line.startswith("{"):
                    noise.append(line)
                return
            events.append(event)
            if on_event is not None:
                on_event(event)

        known = self.run_file.read_bytes() if self.run_file is not None and self.run_file.exists() else None
        ended = process.run(
            [self.tool.path, command, "-json", "-input=false", *arguments],
            self.folder,
            self.environment,
            on_start=self._remember,
            on_line=take,
            on_interrupt=self.on_interrupt,
        )
        found = [event for event in events if isinstance(event, Diagnostic) and event.severity == "error"]
        if self.run_file is not None and ended.code >= 0:
            if known is not None and any(kind_of(entry) is Kind.LOCKED for entry in found):
                self.run_file.write_bytes(known)
            else:
                runs.forget(self.run_file)
        if ended.code != 0:
            self._fail(command, ended, found or parse_text("".join(noise) + ended.errors))
        return events

    def _remember(self, running: int) -> None:
        if self.run_file is not None:
            runs.remember(self.run_file, running)

    def _fail(self, command: str, ended: process.CommandResult, diagnostics: list[Diagnostic]) -> None:
        if ended.interrupted:
            killed = " before it could write its state" if ended.code < 0 else ""
            raise TerraformInterrupted(
                f"cluster {self.cluster}: {command} was interrupted{killed}: run the same command again to continue"
            )
        lines = explain(
            self.cluster,
            diagnostics,
            unlock=self.unlock_command(),
            lock_file=str(self.lock_file or self.folder / LOCK_FILE),
        )
        if not lines:
            last = (ended.errors or ended.output).strip().splitlines()[-1:] or [f"exit code {ended.code}"]
            lines = [f"cluster {self.cluster}: {self.tool.product} {command} failed: {last[0]}"]
        raise TerraformFailed("\n".join(lines), diagnostics)
