"""Finds entrypoints whose exit code is not that of the program: shell commands that hide how it ended."""

from __future__ import annotations

from collections.abc import Iterator

from spotladder.api.entrypoints import (
    Operator,
    commands_of,
    entrypoints,
    is_program,
    program_of,
    shell_script,
    words_of,
)
from spotladder.api.problems import Path
from spotladder.api.tieredjob import TieredJob


def masked_exits(job: TieredJob) -> Iterator[tuple[Path, str]]:
    """For each command of the job that hides the program's exit code: its place in the spec, and what to do."""
    for path, script in entrypoints(job):
        if why := masks(script):
            yield path, f"{why}; otherwise a program that was interrupted or failed can look finished"


def masks(script: str) -> str:
    """How this shell script hides the exit code of its program, and what to write instead; "" if it does not."""
    words = words_of(script)
    if not any(isinstance(word, Operator) for word in words):
        inside = shell_script(list(words))
        return masks(inside) if inside else ""
    commands, ends = commands_of(words)
    if not commands or "PIPESTATUS" in script:
        return ""
    before, last = ends[-2] if len(ends) > 1 else "", commands[-1]
    in_background = any(end == "&" and is_program(one) for one, end in zip(commands, ends, strict=True))
    if ends[-1] == "&" or ("&" in ends and last == ["wait"]) or (in_background and _afterwards(last)):
        return "the program runs in the background (&), so its exit code is lost: remove the &"
    if word := _repeated(commands):
        return (
            f"the shell's {word} around the program hides how it ended, and may start it again on a node that goes: "
            "remove it, since the controller starts the next attempt"
        )
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
    ":", "aws", "azcopy", "cat", "cp", "curl", "date", "echo", "gcloud", "gsutil", "kill", "ls", "mv", "pkill",
    "printf", "rclone", "rm", "rsync", "sleep", "sync", "tail", "tar", "touch", "true",
})  # fmt: skip
"""Commands that are not the program: after it, they hide how it ended."""

_BEFORE = frozenset({"set", "cd", "export", "source", ".", "ulimit", "umask", "trap", "mkdir", "unset", "echo"})


def _afterwards(command: list[str]) -> str:
    """The name of a command that follows the program and hides how it ended; "" for other commands."""
    name = program_of(command)
    return "exit 0" if command == ["exit", "0"] else name if name in _AFTERWARDS else ""


def _repeated(commands: list[list[str]]) -> str:
    """The word of the shell with which a loop or a condition runs the last program; "" if none does, or if the script
    ends with an exit code of its own."""
    found, depth = "", ""
    for command in commands:
        word = command[0]
        depth = "" if word in ("done", "fi") else word if word in ("while", "until", "for", "if") else depth
        inner = command[next((at for at, part in enumerate(command) if part not in _KEYWORDS), len(command)) :]
        if inner and is_program(inner):
            found = depth if word in _CONDITIONS or depth in ("while", "until") else ""
        elif inner[:1] == ["exit"] and inner != ["exit", "0"]:
            found = ""
    return found


_CONDITIONS = frozenset({"while", "until", "if", "elif"})
_KEYWORDS = _CONDITIONS | {"do", "then", "else", "!"}


def _any_program(commands: list[list[str]]) -> bool:
    return any(program_of(command) and program_of(command) not in _BEFORE for command in commands)


def _piped(commands: list[list[str]], ends: list[str]) -> bool:
    """Whether the output of the program goes into a pipe that hides its exit code."""
    known = any(is_program(command) for command in commands)
    for index, end in enumerate(ends[:-1]):
        if end not in ("|", "|&"):
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
