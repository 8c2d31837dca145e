"""The cached records of the containers of a pod: which one runs the program, and how each of them does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from sys import intern
from typing import Any

from spotladder.core.model import Instant
from spotladder.output.last_error import last_error
from spotladder.timestamps import instant
from spotladder.workloads.program_container import native_sidecars

LONGEST_MESSAGE = 1024
"""Maximum number of characters kept of a message: the cause is at the beginning, and Ray appends its logs."""


class ContainerRole(StrEnum):
    PROGRAM = "program"
    INIT = "init"  # runs, and ends, before the program container
    OTHER = "other"  # runs beside the program container: a sidecar, native ones included


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    """One container of a pod. `exit_code` is None until the container has ended; `waiting` is the reason why it does
    not run. `restarted`: the kubelet starts it again when it has ended.

    `error` is the program's error: the last traceback's exception or the last line, from the end of its log in the
    container's status.
    """

    name: str
    role: ContainerRole = ContainerRole.PROGRAM
    ready: bool = False
    restarted: bool = False
    running: bool = False
    waiting: str = ""
    waiting_message: str = ""
    exit_code: int | None = None
    exit_reason: str = ""
    error: str = ""
    running_since: Instant | None = field(default=None, compare=False)
    """For its records only."""

    @property
    def begun(self) -> bool:
        """Whether it runs or has ended."""
        return self.running or self.exit_code is not None


def containers_of(pod: Mapping[str, Any], program: str) -> tuple[ContainerRecord, ...]:
    """The containers of a pod whose state the kubelet has reported, in their order. `program` is the name of the
    program container."""
    return tuple(_records(pod.get("spec") or {}, pod.get("status") or {}, program, native_sidecars(pod)))


def _records(
    spec: Mapping[str, Any], status: Mapping[str, Any], program: str, native: frozenset[str]
) -> Iterator[ContainerRecord]:
    for entry in status.get("initContainerStatuses") or ():
        restarted = entry.get("name") in native
        yield _record(entry, ContainerRole.OTHER if restarted else ContainerRole.INIT, restarted=restarted)
    unprobed = {one.get("name") for one in spec.get("containers") or () if not any(map(one.get, _PROBES))}
    for entry in status.get("containerStatuses") or ():
        name = entry.get("name")
        role = ContainerRole.PROGRAM if name == program else ContainerRole.OTHER
        yield _record(entry, role, unprobed=name in unprobed)


def _record(
    status: Mapping[str, Any], role: ContainerRole, *, restarted: bool = False, unprobed: bool = False
) -> ContainerRecord:
    """`unprobed`: without probes, a container is ready while it runs."""
    state = status.get("state") or {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    return ContainerRecord(
        name=intern(status.get("name", "")),
        role=role,
        ready=bool(status.get("ready")) or (unprobed and "running" in state),
        restarted=restarted,
        running="running" in state,
        waiting=intern(waiting.get("reason") or ""),
        waiting_message=(waiting.get("message") or "")[:LONGEST_MESSAGE],
        exit_code=ended.get("exitCode"),
        exit_reason=intern(ended.get("reason") or ""),
        error=last_error(ended["message"]) if ended.get("message") else "",
        running_since=instant((state.get("running") or {}).get("startedAt")),
    )


_PROBES = ("readinessProbe", "startupProbe")
