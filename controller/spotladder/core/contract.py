"""The contract between a controller and the program of an attempt: exit codes, environment variables, the notice.

The controller and the local runner set the variables and write the notice; `spotladder.train` reads them in the
program, and its exit code is the result. Both sides use this module, so that they cannot disagree. A controller may
run programs with an older or a newer library: members are only added, and their values never change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from spotladder.core.reasons import Reason
from spotladder.exit_code import ExitCode

__all__ = [
    "COMPILE_CACHES",
    "PREFIX",
    "VARIABLES",
    "ExitCode",
    "LaunchVariable",
    "Milestone",
    "Notice",
    "NoticeKind",
    "Variable",
    "compile_caches",
]

PREFIX = "SPOTLADDER_"
"""The beginning of the name of every variable."""


class Variable:
    """Names of the environment variables that a controller sets for a program.

    Each process of an attempt has its own values.
    """

    JOB: Final = "SPOTLADDER_JOB"
    NAMESPACE: Final = "SPOTLADDER_NAMESPACE"
    UID: Final = "SPOTLADDER_UID"  # the TieredJob or local run that the commit log must belong to
    ATTEMPT: Final = "SPOTLADDER_ATTEMPT"  # from 1
    TIER: Final = "SPOTLADDER_TIER"
    URI: Final = "SPOTLADDER_URI"  # bucket and prefix, or folder, of the commit log
    INTERVAL: Final = "SPOTLADDER_INTERVAL"  # between two commits: a duration, or steps as in 50steps
    GRACE: Final = "SPOTLADDER_GRACE"  # duration that a drained attempt has to commit
    KEEP: Final = "SPOTLADDER_KEEP"  # number of commits that are kept
    NOTICE: Final = "SPOTLADDER_NOTICE"  # path of the file with the notice
    STANDBY: Final = "SPOTLADDER_STANDBY"  # "true": the program waits for a notice of the kind `takeover`
    HANG_TIMEOUT: Final = "SPOTLADDER_HANG_TIMEOUT"  # duration without a step after which the program hangs
    HANGS: Final = "SPOTLADDER_HANGS"  # how often the job has hung before: each doubles that duration
    SIZES: Final = "SPOTLADDER_SIZES"  # of an elastic job: the numbers of workers it may train with, as in 2,3,4
    HEARTBEAT: Final = "SPOTLADDER_HEARTBEAT"  # path of the file in which rank 0 reports its progress
    CACHE: Final = "SPOTLADDER_CACHE"  # path of the folder for copies of the newest checkpoint on this machine
    NODE_NOTICE: Final = "SPOTLADDER_NODE_NOTICE"  # path of the notice file of one node, where NOTICE is the attempt's
    CACHE_SIZE: Final = "SPOTLADDER_CACHE_SIZE"  # maximum bytes of these copies
    PROGRAM_FOLDER: Final = "SPOTLADDER_PROGRAM_FOLDER"  # path of the folder whose checkpoints are committed for it
    COMPILED: Final = "SPOTLADDER_COMPILED"  # path of the folder whose compile caches are stored; unset: none are


VARIABLES = frozenset(value for name, value in vars(Variable).items() if name.isupper())
"""The names in `Variable`."""


COMPILE_CACHES: Final = {
    "torch": "TORCHINDUCTOR_CACHE_DIR",
    "triton": "TRITON_CACHE_DIR",
    "jax": "JAX_COMPILATION_CACHE_DIR",
}
"""For each folder of a compile cache the variable with which its framework finds it."""


def compile_caches(folder: str) -> dict[str, str]:
    """The variables of the frameworks that keep what they compile below this folder."""
    return {variable: f"{folder}/{name}" for name, variable in COMPILE_CACHES.items()}


class LaunchVariable:
    """Names of environment variables that users set: of an elastic job, for processes without a launcher, and for
    scripts without a job."""

    RANK: Final = "SPOTLADDER_RANK"
    WORLD_SIZE: Final = "SPOTLADDER_WORLD_SIZE"
    GROUP: Final = "SPOTLADDER_GROUP"  # distinguishes several sets of processes of one job
    GROW_AFTER: Final = "SPOTLADDER_GROW_AFTER"  # duration that an elastic job trains before it grows
    STATE: Final = "SPOTLADDER_STATE"  # state folder of `spotladder run` and of scripts without a job


class Milestone(StrEnum):
    """A point that each attempt passes on its way to its first step, in their usual order. Those of pods are reached
    when all of them have. A library reports what it knows of the last ones."""

    LAUNCHED = "launched"  # its RayJob or JobSet is created
    SCHEDULED = "scheduled"  # its pods have nodes
    CONTAINERS = "containers"  # the program containers of its pods run: their images are pulled
    PROGRAM = "program"  # Ray starts the program
    IMPORTED = "imported"  # rank 0 joins the job: the modules that the program needs for that are imported
    JOINED = "joined"  # the commit log is open, and all ranks are connected
    RESTORED = "restored"  # the program has read the newest commit
    STEPPED = "stepped"  # the first step is done

    @classmethod
    def reported(cls, times: object) -> dict[Milestone, float]:
        """The milestones in a heartbeat, with their times by the program's clock. Anything else in it is ignored."""
        found = times if isinstance(times, Mapping) else {}
        numbers = {one: at for one in cls if isinstance(at := found.get(one), int | float)}
        return {one: float(at) for one, at in numbers.items() if abs(at) <= sys.float_info.max}


class NoticeKind(StrEnum):
    """Why an attempt is drained: its node will be reclaimed, or the controller wants the attempt to end. `TAKE_OVER`
    and `COMMIT` are not requests to stop. A library treats a kind that it does not know as a notice: it commits and
    stops.
    """

    NOTICE = "notice"
    DRAIN = "drain"
    TAKE_OVER = "takeover"  # the standby attempt with this notice is the live one now: its program may start
    COMMIT = "commit"  # a node will be reclaimed: commit now and continue; another notice asks to stop, or to hand over
    HANDOVER = "handover"  # only the pods with this notice leave: commit, and continue inside the attempt without them


@dataclass(frozen=True, slots=True)
class Notice:
    """The request that an attempt commit and stop.

    Args:
        kind: A NoticeKind; text, since a newer controller may know more of them.
        reason: A Reason, or the name of a signal.
        deadline: Seconds since the epoch; None means as soon as possible. Of a request to commit, its own time.
    """

    kind: str = NoticeKind.NOTICE
    reason: str = Reason.EVICTION_NOTICE
    deadline: float | None = None

    @classmethod
    def of(cls, reason: Reason, deadline: float) -> Self:
        """The notice for a drain with this reason."""
        kind = NoticeKind.NOTICE if reason is Reason.EVICTION_NOTICE else NoticeKind.DRAIN
        return cls(kind.value, reason.value, round(deadline, 3))

    @classmethod
    def of_commit(cls, reason: Reason, asked_at: float) -> Self:
        """The request to commit at once and to continue. Another time is another request."""
        return cls(NoticeKind.COMMIT.value, reason.value, round(asked_at, 3))

    @classmethod
    def of_handover(cls, deadline: float) -> Self:
        """The notice for a pod that is handed over."""
        return cls(NoticeKind.HANDOVER.value, Reason.EVICTION_NOTICE.value, round(deadline, 3))

    @classmethod
    def of_takeover(cls) -> Self:
        """The notice that lets the program of a standby attempt start."""
        return cls(NoticeKind.TAKE_OVER.value, Reason.RELIEVED.value)

    def encode(self) -> str:
        """The notice as one line of JSON."""
        content = {"kind": self.kind, "deadline": self.deadline, "reason": self.reason}
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> Self:
        """Parse the notice in this text. Missing fields get their defaults.

        Raises:
            ValueError: The text is not a JSON object, or its deadline is not a number.
        """
        try:
            content = json.loads(text)
        except RecursionError:
            raise ValueError(f"expected a JSON object, got {text[:80]!r}") from None
        if not isinstance(content, dict):
            raise ValueError(f"expected a JSON object, got {text[:80]!r}")  # noqa: TRY004 – the value of `text` is wrong
        deadline = content.get("deadline")
        return cls(
            kind=str(content.get("kind", NoticeKind.NOTICE)),
            reason=str(content.get("reason", Reason.EVICTION_NOTICE)),
            deadline=None if deadline is None else _seconds(deadline),
        )


def _seconds(value: object) -> float:
    try:
        if isinstance(value, (int, float, str)):
            return float(value)
    except (OverflowError, ValueError):
        pass
    raise ValueError(f"expected a deadline in seconds, got {value!r}")
