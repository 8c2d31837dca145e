"""Pulumi: one stack for each cluster, its state and its lock.

The state is in a folder, S3 or GCS. It has names, versions, digests and values, and no secrets, so its passphrase
protects nothing; a fixed one is used unless the user sets PULUMI_CONFIG_PASSPHRASE.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotladder.errors import EnvironmentFailure
from spotladder.local.reaper import alive
from spotladder_infra.rollout.provider import Context
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.watchdog import WatchedRun, watched_until_finished

PROJECT = "spotladder"
PASSPHRASE = "spotladder"  # noqa: S105 – protects nothing, see above
ENGINE_TIMEOUT = 120.0
"""Seconds that a run waits for the engine of another run to release the state's lock."""

POLL_INTERVAL = 1.0

_LOCK = re.compile(r"created by (?P<user>[^@\s]+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<at>\S+)")

_SUMMARY = re.compile(r"(?:update|preview) (?:failed|canceled)")
"""The engine's last message, after those of the resources."""

Program = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Change:
    """An operation of the engine on one resource: create, update, delete, same, refresh, …"""

    resource: str
    operation: str
    old: dict[str, Any]
    new: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Watcher:
    """Callbacks of the engine: the operation on a resource begins, is complete, or fails with a message."""

    begins: Callable[[Change], None]
    done: Callable[[Change], None]
    fails: Callable[[str, str], None]


class PulumiStack:
    """The stack of a cluster. A change waits for Pulumi's lock. Raises EnvironmentFailure if another run keeps it."""

    def __init__(self, fleet: Fleet, cluster: str, state: Path, context: Context) -> None:
        self.name = f"{fleet.metadata.name}-{cluster}"
        self._cluster = cluster
        self._folder = (state / "rollout").absolute()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._environment = {
            "PULUMI_BACKEND_URL": backend(fleet, self._folder),
            "PULUMI_CONFIG_PASSPHRASE": os.environ.get("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE),
            "PULUMI_HOME": os.environ.get("PULUMI_HOME", str(self._folder / "pulumi")),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_PYTHON_CMD": sys.executable,
            **context.environment(),
        }

    def open(self) -> None:
        """Creates the stack if it does not exist. Raises EnvironmentFailure if the state cannot be opened."""
        with watched_until_finished() as run:
            self._select(lambda: None, run)

    def remove(self) -> None:
        """Deletes the stack and its history. Its releases stay installed."""
        from pulumi.automation.errors import CommandError  # noqa: PLC0415 – slow to import

        with watched_until_finished() as run:
            stack = self._select(lambda: None, run)
            try:
                stack.workspace.remove_stack(self.name, force=True)
            except CommandError as error:
                raise EnvironmentFailure(
                    f"cluster {self._cluster}: its state is not removed: {_reason(str(error))}"
                ) from None

    def run(self, program: Program, watcher: Watcher, *, preview: bool = False) -> None:
        """Brings the cluster to the program's releases, drift included; a preview changes nothing there. Raises
        EnvironmentFailure."""
        from pulumi.automation.errors import CommandError, ConcurrentUpdateError  # noqa: PLC0415 – slow to import

        failures: list[str] = []

        def watch(event: Any) -> None:
            _forward(event, watcher, failures)

        with watched_until_finished() as run:
            stack = self._select(program, run)
            deadline = time.monotonic() + ENGINE_TIMEOUT
            while True:
                try:
                    (stack.preview if preview else stack.up)(on_event=watch, refresh=True, color="never")
                except ConcurrentUpdateError as error:
                    self.release_lock(stack, str(error), deadline)
                except CommandError as error:
                    message = failures[0] if failures else _reason(str(error))
                    raise EnvironmentFailure(message) from None
                else:
                    return

    def _select(self, program: Program, run: WatchedRun) -> Any:
        from pulumi.automation.errors import CommandError  # noqa: PLC0415 – slow to import

        from spotladder_infra.rollout import automation  # noqa: PLC0415

        environment = {**self._environment, **run.environment}
        try:
            return automation.create_or_select(self.name, PROJECT, program, environment, run.folder)
        except CommandError as error:
            raise EnvironmentFailure(_closed(self._environment["PULUMI_BACKEND_URL"], str(error))) from None

    def release_lock(self, stack: Any, message: str, deadline: float) -> None:
        """Removes the lock of a process of this machine that is gone, or waits for one that is about to end.

        Raises:
            EnvironmentFailure: The lock is of another machine, or its process still runs at `deadline`.
        """
        holders = [found.groupdict() for found in _LOCK.finditer(message)]
        foreign = [found for found in holders if found["host"] != platform.node()]
        if foreign or not holders:
            who = "{user}@{host} (process {pid}) since {at}".format(**foreign[0]) if foreign else "an unknown process"
            url = self._environment["PULUMI_BACKEND_URL"]
            raise EnvironmentFailure(
                f"cluster {self._cluster}: its state is locked by {who}: wait until that run has ended; if it was "
                f"killed, run: PULUMI_BACKEND_URL='{url}' pulumi cancel --stack organization/{PROJECT}/{self.name}"
            )
        running = [found["pid"] for found in holders if alive(int(found["pid"]))]
        if not running:
            stack.cancel()
        elif time.monotonic() >= deadline:
            raise EnvironmentFailure(
                f"cluster {self._cluster}: its state is locked by process {running[0]} of this machine, which "
                "still runs: wait for it, or end it"
            )
        else:
            time.sleep(POLL_INTERVAL)


def backend(fleet: Fleet, folder: Path) -> str:
    """The URL of Pulumi's state: next to Terraform's state, or a local folder."""
    state = fleet.spec.state
    if state is None:
        # Pulumi replaces its files at once, but not those beside them with their types, which it then cannot read.
        return f"file://{folder}?metadata=skip"
    if state.uri.startswith("s3://"):
        return f"{state.uri}/rollout?region={state.region}"
    return f"{state.uri}/rollout"


REMEDIES = {
    "s3": "check the AWS credentials of this shell (aws sts get-caller-identity), s3:GetObject, s3:PutObject and "
    "s3:DeleteObject on the bucket, and that it exists (spotladder infra state)",
    "gs": "check the Google credentials of this shell (gcloud auth application-default login), the role "
    "roles/storage.objectUser on the bucket, and that it exists (spotladder infra state)",
}
"""The remedy if a state cannot be opened, by the scheme of its URL."""


def _closed(url: str, error: str) -> str:
    """The message for a state that cannot be opened."""
    remedy = REMEDIES.get(url.partition("://")[0], "check that this user may write there")
    return f"state {url} cannot be opened: {_reason(error)}: {remedy}"


def _forward(event: Any, watcher: Watcher, failures: list[str]) -> None:
    if event.resource_pre_event is not None:
        watcher.begins(_change(event.resource_pre_event.metadata))
    elif event.res_outputs_event is not None:
        watcher.done(_change(event.res_outputs_event.metadata))
    elif event.diagnostic_event is not None and event.diagnostic_event.severity == "error":
        urn = event.diagnostic_event.urn or ""
        message = _reason(event.diagnostic_event.message)
        if message and not _SUMMARY.search(message):
            failures.append(message)
            watcher.fails(_resource(urn), message)


def _change(metadata: Any) -> Change:
    old = (metadata.old.outputs if metadata.old else None) or {}
    new = (metadata.new.inputs if metadata.new else None) or {}
    return Change(_resource(metadata.urn), str(getattr(metadata.op, "value", metadata.op)), dict(old), dict(new))


def _resource(urn: str) -> str:
    return urn.rpartition("::")[2]


def _reason(text: str) -> str:
    """The message of an error of a provider, or else the last line that is not empty."""
    plain = re.sub(r"<\{%.*?%\}>", "", text)
    lines = [line.strip().removeprefix("stderr: ") for line in plain.splitlines() if line.strip()]
    for line in lines:
        found = re.search(r"(?:RuntimeError|Exception calling application|EnvironmentFailure): (.+)", line)
        if found:
            return found.group(1).removeprefix("Exception calling application: ")
    errors = [line for line in lines if line.startswith("error:")]
    return (errors or lines or ["no message"])[-1].removeprefix("error: ")


def resources(changes: Sequence[Change]) -> list[Change]:
    """The changes of releases and CRDs, without those of the stack and of providers."""
    return [entry for entry in changes if entry.new.get("chart") or entry.old.get("chart")]
