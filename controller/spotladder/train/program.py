"""Runs a program that keeps its own checkpoints: `python -m spotladder.train.program FOLDER -- COMMAND …`.

1. The newest commit is put back into the folder before the program starts. `{checkpoint}` in an argument is its path;
   without a commit the argument is left out, with the option before it.
2. Each complete checkpoint in the folder is committed while the program runs, the newest first. One is complete when
   its framework has finished it (`saved`) and it no longer changes.
3. At a notice, SIGTERM or Ctrl-C the program gets the signal. What it completes within the grace period is committed,
   and the exit code is 75, unless the program ended well and its last step is committed. A second signal kills it.
4. Every other end of the program is passed on.

With several ranks, each puts the commit back and runs its program; rank 0 commits what is in its folder.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from spotladder.core.contract import ExitCode, Milestone, Notice, Variable
from spotladder.errors import Fenced, InvalidSpec, SpotladderError
from spotladder.state_folder import with_home
from spotladder.train import environment, ranks
from spotladder.train.channel import Alone
from spotladder.train.commits import Commits
from spotladder.train.ending import exit_with_what_happened
from spotladder.train.folder_watch import CHECKPOINT, Watch
from spotladder.train.membership import Member, join, leave_at_once
from spotladder.train.putback import PutBack, put_back

_log = logging.getLogger("spotladder.train")

CHILD_POLL = 0.1

UPLOAD_SHARE = 0.2
"""The share of the grace period that is left for the upload when a program that does not stop is killed."""

_WITH_OPTION = re.compile(r"""(?:(?<=\s)|^)(?:--?[\w.-]+[ \t]+)?(["']?)[^\s'"();&|]*\{checkpoint\}[^\s'"();&|]*\1""")
"""An argument in a script, with the option before it."""


def with_checkpoint(command: Sequence[str], checkpoint: str | None) -> list[str]:
    """The command with the path of the checkpoint in place of `{checkpoint}`. Without one, the arguments with
    `{checkpoint}` are left out, each with the option before it. An argument with spaces is a script of a shell."""
    words: list[str] = []
    for word in command:
        is_script = len(word.split()) > 1
        if checkpoint is not None:
            words.append(word.replace(CHECKPOINT, shlex.quote(checkpoint) if is_script else checkpoint))
        elif CHECKPOINT not in word:
            words.append(word)
        elif is_script:
            words.append(_WITH_OPTION.sub("", word))
        elif word == CHECKPOINT and len(words) > 1 and words[-1].startswith("-"):
            words.pop()
    return words


class Child:
    """The program, in a process group of its own."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        variables = {**os.environ, Variable.PROGRAM_FOLDER: str(folder)}
        self._process = subprocess.Popen(command, process_group=0, env=variables)
        self.code: int | None = None

    def poll(self, *, whole_group: bool) -> bool:
        """Whether the program has ended. With `whole_group`, the processes that it started must have ended as well: a
        shell ends at once at a signal, and the program in it may still write its checkpoint."""
        if os.getpid() == 1:  # The first process of a container is the parent of all orphans.
            self._reap()
        elif self.code is None:
            self.code = self._process.poll()
        return self.code is not None and not (whole_group and self.send(0))

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._process.pid:
                    self.code = self._process.returncode = os.waitstatus_to_exitcode(ended[1])

    def send(self, number: int) -> bool:
        """Send a signal to the process group. Returns whether the group exists."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


class _Run:
    """The program from its start to the exit code of the attempt. Without a writer, on ranks above 0, it commits
    nothing."""

    def __init__(self, member: Member, folder: Path, start: PutBack) -> None:
        self._member = member
        self._folder = folder
        self._grace = member.environment.grace
        self._child: Child | None = None
        self._signal = 0
        self._kill_at = self._until = float("inf")
        self._watch: Watch | None = None
        if member.writer is not None:
            commits = Commits(
                member.log,
                member.writer,
                Alone(member.agreement),
                ranks.ProcessRank(),
                keep=member.environment.keep,
                fenced=self._fenced,
                retry=member.retry,
                hurry=lambda: member.listener.heard is not None,
            )
            self._watch = Watch(folder, member, commits, start)

    def _fenced(self, error: Fenced) -> None:
        """Called by the thread of the commits: a newer writer owns the log."""
        _log.error("%s", error)
        if self._child is not None:
            self._child.send(signal.SIGKILL)
        leave_at_once(ExitCode.FENCED)

    def run(self, command: Sequence[str]) -> int:
        """Run the program and commit its checkpoints. Returns the exit code for the attempt."""
        self._member.listener.poll()  # It installs a handler, which these replace.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)
        try:
            self._child = child = Child(command, self._folder)
        except OSError as error:
            _log.error("%s", error)
            return 127
        if self._watch is not None:
            self._member.heartbeat.beat(self._watch.step, self._watch.total, at_once=True)
            self._member.heartbeat.enter("program")
        try:
            while not child.poll(whole_group=self._stops) and time.monotonic() < self._kill_at:
                self._listen()
                if self._watch is not None:
                    self._watch.look()
                time.sleep(CHILD_POLL)
            if child.code is None or self._stops:
                child.send(signal.SIGKILL)
            if self._watch is not None:
                self._finish(self._watch, killed=child.code is None or child.code < 0)
        except BaseException:
            child.send(signal.SIGKILL)
            raise
        if self._stops:
            return 0 if child.code == 0 and self._is_finished() else ExitCode.INTERRUPTED
        code = child.code or 0
        if code == 0 and self._watch is not None and not self._watch.step:
            _log.warning("no complete checkpoint was found in %s: nothing is committed", self._folder)
        return code if code >= 0 else 128 - code

    @property
    def _stops(self) -> bool:
        return self._until < float("inf")

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._signal and self._child is not None:
            self._child.send(signal.SIGKILL)
        self._signal = number
        self._member.listener.hear(Notice(reason=signal.Signals(number).name))

    def _listen(self) -> None:
        """At the first notice, pass it on to the program as a signal."""
        notice = self._member.listener.poll()
        if notice is None or self._stops:
            return
        left = self._grace if notice.deadline is None else min(self._grace, max(0.0, notice.deadline - time.time()))
        now = time.monotonic()
        self._kill_at, self._until = now + left * (1 - UPLOAD_SHARE), now + left
        number = signal.Signals(self._signal or signal.SIGTERM)
        _log.warning("the program gets %s and has %.0f s to save", number.name, self._kill_at - now)
        if self._child is not None:
            self._child.send(number)

    def _finish(self, watch: Watch, *, killed: bool) -> None:
        """Commit what is complete. While no notice is heard, this waits for the store."""
        for last in (False, True):
            while not watch.wait(CHILD_POLL):
                self._listen()
                if time.monotonic() > self._until:
                    _log.error("the last commit is lost: it was not finished after %.0f s", self._grace)
                    return
            if not last:
                watch.look(ended=True, killed=killed)

    def _is_finished(self) -> bool:
        """Whether the last step is committed."""
        try:
            newest = self._member.log.newest()
        except SpotladderError:
            return False
        return newest is not None and 0 < newest.total <= newest.step


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code for the attempt."""
    folder, command = _parsed(sys.argv[1:] if arguments is None else list(arguments))
    logging.basicConfig(format="spotladder: %(message)s")
    logging.getLogger("spotladder").setLevel(logging.INFO)
    sys.argv = [next((word for word in command if word.endswith(".py")), command[0])]  # The job's name outside of one.
    exit_with_what_happened()
    env = environment.read()
    try:
        member = join(env, ranks.discover())
        member.log.cache = None  # Its files are read-only.
        done = put_back(member, folder)
        member.log.await_compiled()
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    if done.found:
        member.heartbeat.reach(Milestone.RESTORED)
    path = done.path_in(folder)
    _log.info("the program begins%s", f" from {path}" if path else ": no checkpoint is committed yet")
    run = _Run(member, folder, done)
    code = run.run(with_checkpoint(command, path))
    member.close()
    return code


def _parsed(words: list[str]) -> tuple[Path, list[str]]:
    if len(words) < 3 or words[1] != "--":
        raise InvalidSpec("expected FOLDER -- COMMAND …", where="python -m spotladder.train.program")
    return with_home(words[0]).absolute(), words[2:]


if __name__ == "__main__":
    sys.exit(main())
