"""The commands that the containers of a job run: where they are in the spec, and the words of a shell's script."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from spotladder.api.jobset_workload import JobSetWorkload
from spotladder.api.problems import Path
from spotladder.api.ray_workload import RayWorkload
from spotladder.api.template import inner
from spotladder.api.tieredjob import TieredJob

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
_LONGEST = 65_536
"""Longer entrypoints are not read."""

_WRAPPERS = frozenset({"dumb-init", "env", "exec", "nice", "nohup", "stdbuf", "time", "tini"})
_PROGRAMS = frozenset({"accelerate", "deepspeed", "horovodrun", "mpirun", "ray", "torchrun", "uv", "poetry", "pipenv"})


def entrypoints(job: TieredJob) -> Iterator[tuple[Path, str]]:
    """Each command of the job, as a shell's script, with its place in the spec. "" for a command that is in the image
    or cannot be read."""
    for path, script in _of_workload(job):
        yield path if job.spec.train is None else ("spec", "train", "script"), script


def _of_workload(job: TieredJob) -> Iterator[tuple[Path, str]]:
    ray, jobset = job.spec.workload.of(RayWorkload), job.spec.workload.of(JobSetWorkload)
    if ray is not None:
        yield (
            ("spec", "workload", "ray", "template", "spec", "entrypoint"),
            _readable(ray.template.spec.get("entrypoint")),
        )
    for index, replicated in enumerate(jobset.template.spec["replicatedJobs"] if jobset is not None else ()):
        at: Path = ("spec", "workload", "jobSet", "template", "spec", "replicatedJobs", index)
        at = (*at, "template", "spec", "template", "spec", "containers")
        containers = inner(replicated, "template", "spec", "template", "spec", "containers")
        for place, container in enumerate(containers if isinstance(containers, list) else ()):
            given = (inner(container, name) for name in ("command", "args"))
            words = [word for part in given if isinstance(part, list) for word in part]
            text = all(isinstance(word, str) for word in words)
            direct = shlex.join(words) if text and inner(container, "command") else ""
            script = shell_script(words) or direct
            yield (*at, place), _readable(script)


def _readable(script: object) -> str:
    return script if isinstance(script, str) and len(script) <= _LONGEST else ""


def shell_script(words: list[Any]) -> str:
    """The script that a shell runs with these arguments; "" if they run no shell."""
    if not all(isinstance(word, str) for word in words):
        return ""
    words = words[_wrappers(words) :]
    if not words or words[0].rpartition("/")[2] not in _SHELLS:
        return ""
    options: list[str] = []
    for index, word in enumerate(words[1:], start=1):
        if not word.startswith(("-", "+")) and options[-1:] != ["-o"]:
            return ""  # A file.
        options.append(word)
        if word.startswith("-") and not word.startswith("--") and word.endswith("c") and index + 1 < len(words):
            given = " ".join(option for option in options if option != word)
            flags = "set -e\n" if "e" in word else ""
            return f"{flags}set {given}\n{words[index + 1]}" if given else flags + str(words[index + 1])
    return ""


def _wrappers(words: list[str]) -> int:
    """The number of words before the command itself: programs that end as their command does, options, variables."""
    for index, word in enumerate(words):
        if word.rpartition("/")[2] not in _WRAPPERS and not word.startswith("-") and "=" not in word:
            return index
    return len(words)


def program_of(command: list[str]) -> str:
    """The name of the program of a command, without assignments of variables and wrappers."""
    return next((word.rpartition("/")[2] for word in command[_wrappers(command) :]), "")


def is_program(command: list[str]) -> bool:
    """Whether this command starts a program of Python or a script."""
    name = program_of(command)
    return name.startswith("python") or name in _PROGRAMS or name.endswith((".sh", ".py"))


_OPAQUE = re.compile(
    r"""(?<!\S)#[^\n]*|'[^']*'|"(?:\\.|[^"\\])*"|`[^`]*`|\$?\([^()]*\)"""
    r"|(?<![0-9])[0-9]*[<>]&[0-9-]?|&>>?|>\||\\.",
    re.DOTALL,
)
"""Comments, quoted text, substituted commands and redirections, whose operators separate no commands."""

_NESTED = 8
"""Levels of parentheses in parentheses."""

_SEPARATOR = re.compile(r"(\|\||&&|\|&?|[;&\n])")


def commands_of(script: str) -> tuple[list[list[str]], list[str]]:
    """The words of each command of the script, and the separator after it ("" after the last). In place of quoted text
    and of what a command prints they have an underscore."""
    plain = script
    for _ in range(_NESTED):
        plain = _OPAQUE.sub(lambda found: "" if found[0].startswith("#") else "_", plain)
    pieces = [*_SEPARATOR.split(plain), ""]
    commands: list[list[str]] = []
    ends: list[str] = []
    for text, end in zip(pieces[::2], pieces[1::2], strict=True):
        if words := [word for word in text.split() if word not in ("{", "}")]:
            commands.append(words)
            ends.append(end)
    if ends and ends[-1] in (";", "\n"):
        ends[-1] = ""
    return commands, ends
