"""What `spotladder run` runs: a job file with its world, or a command without them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spotladder.cli.invocation import command_words
from spotladder.cli.option_errors import seconds
from spotladder.errors import InvalidSpec, Refused

if TYPE_CHECKING:
    from spotladder.api.tieredjob import TieredJob
    from spotladder.api.world import World

_STEPS = re.compile(r"[1-9][0-9]{0,8}steps")

JOB_FILES = (".yaml", ".yml", ".json")

_ARGUMENTS = {
    "spec.workload.ray.template.spec.entrypoint": "COMMAND",
    "spec.checkpoints.programFolder": "--program-folder",
    "pools.spot.interruptions": "--evict",
}
"""The argument that sets each field of the job and the world of a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """The arguments of the command line. `folder` and `evictions` are for a command, `world` is for a job file."""

    words: Sequence[str]
    world: Path | None = None
    folder: str | None = None
    evictions: Sequence[str] = ()

    @property
    def is_command(self) -> bool:
        """Whether the words are a command, and not the name of a job file."""
        return not self.words[0].endswith(JOB_FILES)

    @property
    def job_file(self) -> Path:
        """The job file; for a command, a file beside which it could be, in the current folder."""
        return Path("command.yaml") if self.is_command else Path(self.words[0])

    def check(self) -> None:
        """Raise Refused for options and words that do not belong together."""
        if self.is_command and self.world:
            raise Refused(
                f"--world is for a job file, and {self.words[0]} is a command: use --evict, or write job.yaml"
            )
        if not self.is_command and (self.folder or self.evictions):
            given = "--program-folder" if self.folder else "--evict"
            instead = "checkpoints.programFolder" if self.folder else "interruptions of a world file"
            raise Refused(f"{given} is for a command without a job file: use {instead}")
        if not self.is_command and len(self.words) > 1:
            raise Refused(f"{self.words[1]} is one argument too many: the job file {self.words[0]} says what runs")
        for text in self.evictions:
            if _STEPS.fullmatch(text):
                continue
            if "step" in text:
                raise Refused(f"--evict: {text!r} is not a step: write one like 20steps")
            seconds("--evict", text)

    @contextmanager
    def errors_located(self) -> Iterator[None]:
        """Inside the block, an error about a field has its position in the job file, or names the argument of a
        command."""
        from spotladder.api.read import errors_located

        if not self.is_command:
            with errors_located(self.job_file):
                yield
            return
        try:
            yield
        except InvalidSpec as error:
            given = next((given for field, given in _ARGUMENTS.items() if error.path.startswith(field)), error.path)
            raise InvalidSpec(error.message, path=given, where=error.where) from error

    def read(self, state_root: Path) -> tuple[TieredJob, World]:
        """The job and the world. Raises InvalidSpec."""
        from spotladder.api.command_job import command_job, command_world, name_of
        from spotladder.api.local_mode import on_this_machine
        from spotladder.api.read import read_job, read_job_and_world

        checkpoints = state_root / "checkpoints"
        if self.is_command:
            return (
                command_job(self.words, name_of(self.words, Path.cwd()), checkpoints, self.folder),
                command_world(self.evictions),
            )
        if self.world:
            job, world = read_job_and_world(self.job_file, self.world)
            return on_this_machine(job, checkpoints), world
        job = on_this_machine(read_job(self.job_file), checkpoints)
        return job, _default_world(job)

    def to_continue(self, report: Path | None, state_dir: Path | None) -> str:
        """The command line that continues the run."""
        options = {"--world": self.world, "--program-folder": self.folder, "--report": report, "--state-dir": state_dir}
        given = [word for option, value in options.items() if value for word in (option, str(value))]
        evicted = [word for text in self.evictions for word in ("--evict", text)]
        if self.is_command:
            return shlex.join([*command_words(), "run", *given, *evicted, "--continue", "--", *self.words])
        return shlex.join([*command_words(), "run", str(self.words[0]), *given, "--continue"])


def _default_world(job: TieredJob) -> World:
    """The default world: every tier has as many nodes as the job has workers and never loses them."""
    from spotladder.api.local_mode import local_program
    from spotladder.api.world import World

    nodes = max(1, local_program(job, job.spec.tiers[0].name).workers)
    return World.model_validate({"pools": {tier.capacity_tier: {"nodes": nodes} for tier in job.spec.tiers}})
