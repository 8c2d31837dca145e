"""Finds entrypoints whose exit code is not that of the program: shell commands that hide how it ended."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from spotladder.api.entrypoints import commands_of, entrypoints, is_program, program_of, shell_script
from spotladder.api.problems import Path
from spotladder.api.tieredjob import TieredJob


def masked_exits(job: TieredJob) -> Iterator[tuple[Path, str]]:
    """For each command of the job that hides the program's exit code: its place in the spec, and what to do."""
    for path, script in entrypoints(job):
        if why := masks(script):
            yield path, f"{why}; otherwise a program that was interrupted or failed can look finished"


def masks(script: str) -> str:
    """How this shell script hides the exit code of its program, and what to write instead; "" if it does not. Scripts
    with here-documents or conditions are not judged."""
    commands, ends = commands_of(script)
    if ends == [""]:
        inside = shell_script(_words(script))
        return masks(inside) if inside else ""
    if not commands or "PIPESTATUS" in script or _HERE_DOCUMENT.search(script):
        return ""
    before, last = ends[-2] if len(ends) > 1 else "", commands[-1]
    if last == ["done"] and (loop := commands[0][0]) in ("until", "while"):
        return (
            f"the shell's {loop} around the program hides how it ended, and may start it again on a node that goes: "
            "remove it, since the controller starts the next attempt"
        )
    if any(command[0] in _COMPOUND for command in commands):
        return ""
    afterwards = _afterwards(last)
    if ends[-1] == "&" or ("&" in ends and last == ["wait"]) or (before == "&" and afterwards):
        return "the program runs in the background (&), so its exit code is lost: remove the &"
    if before == "||" and afterwards:
        return f"|| {afterwards} hides the program's exit code: remove it"
    if not any(_sets(command, "pipefail") for command in commands) and _piped(commands, ends):
        return (
            "a pipe has the exit code of its last command, not the program's: write "
            "bash -c 'set -o pipefail; … | …', or redirect the output to a file"
        )
    stops = any(_sets(command, "errexit", "e") for command in commands)
    exits = any(command[0] == "exit" for command in commands[:-1])
    if before in (";", "\n") and not (stops or exits) and afterwards and _any_program(commands[:-1]):
        return (
            f"the exit code is that of the last command ({afterwards}), not the program's: separate the commands with "
            "&&, or begin with set -e"
        )
    return ""


_HERE_DOCUMENT = re.compile(r"(?<!<)<<(?!<)")
_COMPOUND = frozenset({"case", "for", "if", "until", "while"})

_AFTERWARDS = frozenset({
    ":", "aws", "azcopy", "cat", "cp", "curl", "date", "echo", "gcloud", "gsutil", "kill", "ls", "mv", "pkill",
    "printf", "rclone", "rm", "rsync", "sleep", "sync", "tail", "tar", "touch", "true",
})  # fmt: skip
"""Commands that are not the program: after it, they hide how it ended."""

_BEFORE = frozenset({"set", "cd", "export", "source", ".", "ulimit", "umask", "trap", "mkdir", "unset", "echo"})


def _afterwards(command: list[str]) -> str:
    """The name of a command that follows the program and hides how it ended; "" for other commands."""
    name = program_of(command)
    return "exit 0" if command == ["exit", "0"] else name if name in _AFTERWARDS else ""


def _words(command: str) -> list[str]:
    """The words of one command; none if it cannot be read."""
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return []


def _any_program(commands: list[list[str]]) -> bool:
    return any(program_of(command) and program_of(command) not in _BEFORE for command in commands)


def _piped(commands: list[list[str]], ends: list[str]) -> bool:
    """Whether the output of the program goes into a pipe that hides its exit code."""
    known = any(is_program(command) for command in commands)
    for index, end in enumerate(ends[:-1]):
        if end not in ("|", "|&") or is_program(commands[index + 1]):
            continue
        last_pipeline = all(later in ("|", "|&") for later in ends[index:-1])
        if is_program(commands[index]) or (not known and last_pipeline):
            return True
    return False


def _sets(command: list[str], option: str, letter: str = "") -> bool:
    """Whether this is a `set` of the option."""
    if command[0] != "set":
        return False
    letters = "".join(word[1:] for word in command[1:] if word.startswith("-") and not word.startswith("--"))
    return option in command or (bool(letter) and letter in letters)
