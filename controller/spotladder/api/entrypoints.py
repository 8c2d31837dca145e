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


class Operator(str):
    """A separator of commands, as opposed to a word with the same text."""

    __slots__ = ()


_OPERATORS = ("<<<", "<<-", "<<", "&>>", "&>", ">&", "<&", ">|", "&&", "||", "|&", ";;", ";", "&", "|", "(", ")", "\n")
_SEPARATORS = frozenset({"&&", "||", "|&", "|", ";", "&", "\n"})


def words_of(script: str) -> list[str]:
    """The words and operators of a script. Quoted text and substituted commands belong to their word; comments and
    here-documents are left out."""
    found: list[str] = []
    word: str | None = None
    index = 0
    while index < len(script):
        char = script[index]
        operator = next((one for one in _OPERATORS if script.startswith(one, index)), "")
        if char == "\\":
            word = (word or "") + script[index + 1 : index + 2].replace("\n", "")
            index += 2
        elif char in "'\"":
            end = _quoted_until(script, index)
            word = (word or "") + script[index + 1 : end]
            index = end + 1
        elif char == "`" or script.startswith("$(", index):
            end = _substituted_until(script, index)
            word = (word or "") + script[index:end]
            index = end
        elif char == "#" and word is None:
            index = script.find("\n", index) if "\n" in script[index:] else len(script)
        elif operator or char.isspace():
            if word is not None:
                found.append(word)
            word = None
            if operator:
                found.append(Operator(operator))
            index += len(operator) or 1
            if operator == "\n":
                index = _after_input(script, index, found)
        else:
            word = (word or "") + char
            index += 1
    return found if word is None else [*found, word]


def _quoted_until(script: str, start: int) -> int:
    """The index of the quotation mark that closes the one at `start`; the length of the script if none does."""
    index = start + 1
    while index < len(script) and script[index] != script[start]:
        index += 2 if script[index] == "\\" and script[start] == '"' else 1
    return index


def _substituted_until(script: str, start: int) -> int:
    """The index after the command substitution that begins at `start`; the length of the script if none ends it."""
    if script[start] == "`":
        return script.find("`", start + 1) + 1 or len(script)
    depth, index = 0, start + 1
    while index < len(script):
        if script[index] in "'\"":
            index = _quoted_until(script, index)
        elif script[index] in "()":
            depth += 1 if script[index] == "(" else -1
            if not depth:
                return index + 1
        index += 1
    return len(script)


def _after_input(script: str, start: int, words: list[str]) -> int:
    """The place after the here-documents of the line that ends before `start`, where the script has these words."""
    for index in range(len(words) - 2, 0, -1):
        if isinstance(words[index], Operator) and words[index] == "\n":
            break
        if isinstance(words[index - 1], Operator) and words[index - 1] in ("<<", "<<-"):
            end = re.compile(rf"^\t*{re.escape(words[index])}$", re.MULTILINE).search(script, start)
            start = end.end() if end else len(script)
    return start


def commands_of(words: list[str]) -> tuple[list[list[str]], list[str]]:
    """The commands of the script, and the separator after each of them ("" after the last)."""
    commands: list[list[str]] = []
    ends: list[str] = []
    current: list[str] = []
    for word in [*words, Operator("")]:
        if not isinstance(word, Operator):
            current += [word] if current or word not in ("{", "}") else []
        elif word in _SEPARATORS or not word:
            if current:
                commands.append(current)
                ends.append(str(word))
            current = []
    while ends and ends[-1] in (";", "\n"):
        ends[-1] = ""
    return commands, ends
