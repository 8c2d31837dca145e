"""Finds entrypoints whose exit code is not that of the program: shell commands that hide how it ended."""

from __future__ import annotations

import re
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


def masked_exits(job: TieredJob) -> Iterator[tuple[Path, str]]:
    """For each command of the job that hides the program's exit code: its place in the spec, and what to do."""
    ray, jobset = job.spec.workload.of(RayWorkload), job.spec.workload.of(JobSetWorkload)
    if ray is not None:
        path: Path = ("spec", "workload", "ray", "template", "spec", "entrypoint")
        yield from _found(path, ray.template.spec.get("entrypoint"))
    for index, replicated in enumerate(jobset.template.spec["replicatedJobs"] if jobset is not None else ()):
        at: Path = ("spec", "workload", "jobSet", "template", "spec", "replicatedJobs", index)
        at = (*at, "template", "spec", "template", "spec", "containers")
        containers = inner(replicated, "template", "spec", "template", "spec", "containers")
        for place, container in enumerate(containers if isinstance(containers, list) else ()):
            given = (inner(container, name) for name in ("command", "args"))
            words = [word for part in given if isinstance(part, list) for word in part]
            yield from _found((*at, place), _script(words))


def _found(path: Path, script: object) -> Iterator[tuple[Path, str]]:
    if isinstance(script, str) and len(script) <= _LONGEST and (why := masks(script)):
        yield path, f"{why}; otherwise a program that was interrupted or failed can look finished"


def _script(words: list[Any]) -> str:
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


def masks(script: str) -> str:
    """How this shell script hides the exit code of its program, and what to write instead; "" if it does not."""
    words = _words(script)
    if not any(isinstance(word, _Operator) for word in words):
        inside = _script(list(words))
        return masks(inside) if inside else ""
    commands, ends = _commands(words)
    if not commands or "PIPESTATUS" in script:
        return ""
    before, last = ends[-2] if len(ends) > 1 else "", commands[-1]
    if ends[-1] == "&" or ("&" in ends and last == ["wait"]):
        return "the program runs in the background (&), so its exit code is lost: remove the &"
    if before == "||" and (afterwards := _afterwards(last)):
        return f"|| {afterwards} hides the program's exit code: remove it"
    if not any(_sets(command, "pipefail") for command in commands) and _piped(commands, ends):
        return (
            "a pipe has the exit code of its last command, not the program's: write "
            "bash -c 'set -o pipefail; … | …', or redirect the output to a file"
        )
    stops = any(_sets(command, "errexit", "e") for command in commands)
    if before in (";", "\n") and not stops and (afterwards := _afterwards(last)) and _any_program(commands[:-1]):
        return (
            f"the exit code is that of the last command ({afterwards}), not the program's: separate the commands with "
            "&&, or begin with set -e"
        )
    return ""


_AFTERWARDS = frozenset({
    ":", "aws", "azcopy", "cat", "cp", "curl", "date", "echo", "gcloud", "gsutil", "ls", "mv", "printf", "rclone", "rm",
    "rsync", "sleep", "sync", "tar", "touch", "true",
})  # fmt: skip
"""Commands that are not the program: after it, they hide how it ended."""

_WRAPPERS = frozenset({"dumb-init", "env", "exec", "nice", "nohup", "stdbuf", "time", "tini"})
_PROGRAMS = frozenset({"accelerate", "deepspeed", "horovodrun", "mpirun", "ray", "torchrun", "uv", "poetry", "pipenv"})
_BEFORE = frozenset({"set", "cd", "export", "source", ".", "ulimit", "umask", "trap", "mkdir", "unset", "echo"})


def _first(command: list[str]) -> str:
    """The name of the program of a command, without assignments of variables and wrappers."""
    return next((word.rpartition("/")[2] for word in command[_wrappers(command) :]), "")


def _afterwards(command: list[str]) -> str:
    """The name of a command that follows the program and hides how it ended; "" for other commands."""
    return "exit 0" if command == ["exit", "0"] else _first(command) if _first(command) in _AFTERWARDS else ""


def _is_program(command: list[str]) -> bool:
    name = _first(command)
    return name.startswith("python") or name in _PROGRAMS or name.endswith((".sh", ".py"))


def _any_program(commands: list[list[str]]) -> bool:
    return any(_first(command) and _first(command) not in _BEFORE for command in commands)


def _piped(commands: list[list[str]], ends: list[str]) -> bool:
    """Whether the output of the program goes into a pipe that hides its exit code."""
    known = any(_is_program(command) for command in commands)
    for index, end in enumerate(ends[:-1]):
        if end not in ("|", "|&"):
            continue
        last_pipeline = all(later in ("|", "|&") for later in ends[index:-1])
        if _is_program(commands[index]) or (not known and last_pipeline):
            return True
    return False


def _sets(command: list[str], option: str, letter: str = "") -> bool:
    """Whether this is a `set` of the option."""
    if command[0] != "set":
        return False
    letters = "".join(word[1:] for word in command[1:] if word.startswith("-") and not word.startswith("--"))
    return option in command or (bool(letter) and letter in letters)


class _Operator(str):
    """A separator of commands, as opposed to a word with the same text."""

    __slots__ = ()


_OPERATORS = ("<<<", "<<-", "<<", "&>>", "&>", ">&", "<&", ">|", "&&", "||", "|&", ";;", ";", "&", "|", "(", ")", "\n")
_SEPARATORS = frozenset({"&&", "||", "|&", "|", ";", "&", "\n"})


def _words(script: str) -> list[str]:
    """The words and operators of a script. Comments and here-documents are left out."""
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
        elif char == "#" and word is None:
            index = script.find("\n", index) if "\n" in script[index:] else len(script)
        elif operator or char.isspace():
            if word is not None:
                found.append(word)
            word = None
            if operator:
                found.append(_Operator(operator))
            index += len(operator) or 1
            if operator == "\n":
                index = _after_input(script, index, found)
        else:
            word = (word or "") + char
            index += 1
    return found if word is None else [*found, word]


def _quoted_until(script: str, start: int) -> int:
    """The place of the quotation mark that ends the quotation at `start`; the end of the script if there is none."""
    index = start + 1
    while index < len(script) and script[index] != script[start]:
        index += 2 if script[index] == "\\" and script[start] == '"' else 1
    return index


def _after_input(script: str, start: int, words: list[str]) -> int:
    """The place after the here-documents of the line that ends before `start`, where the script has these words."""
    for index in range(len(words) - 2, 0, -1):
        if isinstance(words[index], _Operator) and words[index] == "\n":
            break
        if isinstance(words[index - 1], _Operator) and words[index - 1] in ("<<", "<<-"):
            end = re.compile(rf"^\t*{re.escape(words[index])}$", re.MULTILINE).search(script, start)
            start = end.end() if end else len(script)
    return start


def _commands(words: list[str]) -> tuple[list[list[str]], list[str]]:
    """The commands of the script, and the separator after each of them ("" after the last)."""
    commands: list[list[str]] = []
    ends: list[str] = []
    current: list[str] = []
    for word in [*words, _Operator("")]:
        if not isinstance(word, _Operator):
            current += [word] if current or word not in ("{", "}") else []
        elif word in _SEPARATORS or not word:
            if current:
                commands.append(current)
                ends.append(str(word))
            current = []
    while ends and ends[-1] in (";", "\n"):
        ends[-1] = ""
    return commands, ends
