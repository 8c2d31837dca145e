"""The environment variables that the controller sets for a program: one accessor for each, with the default outside a
job."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from spotladder.core.contract import PREFIX, LaunchVariable, Variable
from spotladder.core.durations import parse_duration
from spotladder.errors import InvalidSpec
from spotladder.state_folder import state_root

_STEPS = re.compile(r"\s*(\d+)\s*steps?\s*")
_UNSAFE = re.compile(r"[^a-z0-9-]+")

DEFAULT_INTERVAL = "5m"
DEFAULT_GRACE = "90s"
DEFAULT_KEEP = 3
DEFAULT_HANG_TIMEOUT = "60s"
DEFAULT_GROW_AFTER = "10m"


@dataclass(frozen=True, slots=True)
class Interval:
    """The interval between commits: `steps` steps, or `seconds` seconds. The other field is 0."""

    steps: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment variables of one process. A variable is read when it is needed, so that an error names it."""

    variables: Mapping[str, str]

    @property
    def job(self) -> str:
        """The job's name; outside a job the name of the script."""
        return self._get(Variable.JOB) or _script()

    @property
    def namespace(self) -> str:
        return self._get(Variable.NAMESPACE) or "default"

    @property
    def attempt(self) -> int:
        """The attempt's number, from 1. Outside a job it is 1, so that a restarted script resumes."""
        return self._count(Variable.ATTEMPT, 1)

    @property
    def tier(self) -> str:
        return self._get(Variable.TIER) or "local"

    @property
    def uri(self) -> str:
        """The bucket and prefix of the job's folder. Outside a job, a folder in the user's home. If the job has no
        name either, the script's location is part of it, so that two scripts called train.py do not share checkpoints.
        """
        if uri := self._get(Variable.URI):
            return uri
        place = "" if self._get(Variable.JOB) else _place()
        return str(state_root(self.variables) / self.namespace / "checkpoints" / place)

    @property
    def uid(self) -> str:
        """The UID of the job or run that must own the commit log; "" accepts any."""
        return self._get(Variable.UID)

    @property
    def interval(self) -> Interval:
        text = self._get(Variable.INTERVAL) or DEFAULT_INTERVAL
        if steps := _STEPS.fullmatch(text):
            if int(steps[1]) < 1:
                raise InvalidSpec("expected at least 1 step", where=Variable.INTERVAL)
            return Interval(steps=int(steps[1]))
        alternative = " or a number of steps such as 50steps"
        seconds = self._duration(Variable.INTERVAL, DEFAULT_INTERVAL, alternative)
        if not seconds:
            raise InvalidSpec("must not be 0: for a commit after each step write 1steps", where=Variable.INTERVAL)
        return Interval(seconds=seconds)

    @property
    def grace(self) -> float:
        """Seconds that a drained attempt has to commit."""
        return self._duration(Variable.GRACE, DEFAULT_GRACE)

    @property
    def keep(self) -> int:
        """The number of commits to keep."""
        return self._count(Variable.KEEP, DEFAULT_KEEP)

    @property
    def notice_file(self) -> Path | None:
        """The path of the notice file, which the controller writes to drain this attempt."""
        return self._path(Variable.NOTICE)

    @property
    def notice_files(self) -> list[Path]:
        """The notice file of the attempt, and that of this node if it has its own."""
        return [path for path in (self.notice_file, self._path(Variable.NODE_NOTICE)) if path is not None]

    @property
    def standby(self) -> bool:
        """Whether the attempt was launched as a standby attempt."""
        return self._get(Variable.STANDBY) == "true"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of workers that an elastic job may train with, ascending; () if the job is not elastic."""
        text = self._get(Variable.SIZES)
        parts = [part.strip() for part in text.split(",")] if text else []
        if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
            raise InvalidSpec(f"{text!r} is not a list of numbers from 1, like 2,3,4", where=Variable.SIZES)
        return tuple(sorted({int(part) for part in parts}))

    @property
    def grow_after(self) -> float:
        """Seconds that an elastic job trains with its current workers before it grows."""
        return self._duration(LaunchVariable.GROW_AFTER, DEFAULT_GROW_AFTER)

    @property
    def heartbeat_file(self) -> Path | None:
        """The path of the heartbeat file, in which rank 0 reports its progress."""
        return self._path(Variable.HEARTBEAT)

    @property
    def hang_timeout(self) -> float:
        """Minimum seconds without a step after which the program hangs."""
        return self._duration(Variable.HANG_TIMEOUT, DEFAULT_HANG_TIMEOUT)

    @property
    def hangs(self) -> int:
        """The number of earlier hangs of the job."""
        return self._count(Variable.HANGS, 1) if self._get(Variable.HANGS) else 0

    @property
    def cache_folder(self) -> Path | None:
        """The folder for copies of the newest checkpoint on this machine; None for no copies."""
        return self._path(Variable.CACHE)

    @property
    def compiled_folder(self) -> Path | None:
        """The folder of the compile caches that are stored; None if they are not."""
        return self._path(Variable.COMPILED)

    @property
    def program_folder(self) -> str:
        """The folder whose checkpoints `train.program` commits for this program; "" for none."""
        return self._get(Variable.PROGRAM_FOLDER)

    @property
    def cache_size(self) -> int | None:
        """Maximum bytes of these copies; None for no limit."""
        return self._count(Variable.CACHE_SIZE, 1) if self._get(Variable.CACHE_SIZE) else None

    def exported(self) -> dict[str, str]:
        """All variables, with defaults filled in, for another process that works on the same job.

        The folders of the caches and the notice file of the node are not among them: the other process may run on
        another machine.
        """
        resolved = {
            Variable.JOB: self.job,
            Variable.NAMESPACE: self.namespace,
            Variable.ATTEMPT: str(self.attempt),
            Variable.TIER: self.tier,
            Variable.URI: self.uri,
        }
        given = {key: value for key, value in self.variables.items() if key.startswith(PREFIX)}
        for own in (Variable.CACHE, Variable.COMPILED, Variable.NODE_NOTICE):
            given.pop(own, None)
        return {**given, **resolved}

    def _get(self, name: str) -> str:
        return self.variables.get(name, "").strip()

    def _path(self, name: str) -> Path | None:
        text = self._get(name)
        return Path(text) if text else None

    def _count(self, name: str, default: int) -> int:
        text = self._get(name) or str(default)
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise InvalidSpec(f"{text!r} is not a number from 1", where=name)
        return int(text)

    def _duration(self, name: str, default: str, alternative: str = "") -> float:
        try:
            return parse_duration(self._get(name) or default)
        except ValueError as error:
            raise InvalidSpec(f"{error}{alternative}", where=name) from None


def _program() -> Path:
    """The script of this process. In a notebook this is the notebook's file, or a name in the current folder if Jupyter
    does not tell it: the script of the kernel is the same for all notebooks."""
    script = Path(sys.argv[0] or "script")
    is_kernel = script.name in {"ipykernel_launcher.py", "colab_kernel_launcher.py"}
    return Path(os.environ.get("JPY_SESSION_NAME") or "notebook") if is_kernel else script


def _script() -> str:
    """A job name that identifies the script in its folder."""
    stem = _program().stem
    name = _safe(stem) or "script"
    return name if stem.isascii() else f"{name}-{_hash(stem)}"


def _place() -> str:
    """A folder name that identifies the script's location."""
    folder = _program().resolve().parent
    return f"{_safe(folder.name)}-{_hash(folder)}"


def _hash(path: str | Path) -> str:
    return sha256(os.fsencode(path)).hexdigest()[:8]


def _safe(name: str) -> str:
    return _UNSAFE.sub("-", name.lower()).strip("-")


def read() -> Environment:
    """The current environment of this process."""
    return Environment(dict(os.environ))
