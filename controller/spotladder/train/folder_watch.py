"""Commits the complete checkpoints of a program's folder while the program runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from spotladder.train.commits import Commits
from spotladder.train.membership import Member
from spotladder.train.pending import Checkpoint
from spotladder.train.putback import Changed, PutBack, claim, copied
from spotladder.train.saved import Saved, SavedFile, committed_together, files_in, has_state, joined, saved_in

_log = logging.getLogger("spotladder.train")

LOOK_INTERVAL = 0.5
"""Minimum seconds between two scans of the folder; longer if a scan takes long."""

SHARE = 20
"""Scans take at most 1 / SHARE of the time."""

SETTLED_AFTER = 1.0
"""Seconds without a change of its files after which a complete checkpoint is committed."""

HALF_SETTLED_AFTER = 60.0
"""The same of one that has fewer files than those of other steps."""

UNRECOGNIZED_AFTER = 300.0
"""Seconds without a complete checkpoint after which the log warns, once, that no file of the program is recognized as
one."""

CHECKPOINT = "{checkpoint}"
"""The text in an argument of the program that stands for the path of the checkpoint."""

MAX_FILES = 100_000
"""A commit lists all of its files in one entry of the log."""


@dataclass
class Watch:
    """Repeatedly commits the newest complete checkpoint of a folder in the background. `step` and `total` are
    those of the newest commit."""

    folder: Path
    member: Member
    commits: Commits
    start: PutBack
    clock: Callable[[], float] = time.monotonic
    step: int = 0
    total: int = 0
    _began: float = 0.0
    _next: float = float("-inf")
    _seen: dict[str, tuple[tuple[SavedFile, ...], float]] = field(default_factory=dict)
    _done: dict[str, tuple[SavedFile, ...]] = field(default_factory=dict)
    _newest: int = 0
    _warned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._began = self.clock()
        if (found := self.start.found) is not None:
            self.step, self.total = found.step, found.total
            self.commits.stepped_over(found.skipped)
        for saved in saved_in(self.folder):
            if self.start.is_committed(saved):
                self._skip(saved)

    def _skip(self, *parts: Saved) -> None:
        """This version of these checkpoints is committed, or never will be."""
        self._done |= {saved.name: saved.files for saved in parts}

    def look(self, *, ended: bool = False, killed: bool = False) -> None:
        """Submit the newest checkpoint that is complete. Raises the error of an earlier commit.

        `ended`: nothing writes there any more. `killed`: the program may have left a file that only looks complete.
        """
        is_idle, began = self.wait(), self.clock()
        if not ended and began < self._next:
            return
        here = saved_in(self.folder)
        if here:
            self._claim()
        complete = [saved for saved in here if saved.complete]
        new = [saved for saved in complete if self._is_new(saved)]
        ready = [saved for saved in new if self._is_at_rest(saved) or (ended and (saved.proven or not killed))]
        changing = {saved.step for saved in new if not saved.loose and saved not in ready}
        ready = [saved for saved in ready if saved.loose or saved.step not in changing]
        self._next = self.clock() + max(LOOK_INTERVAL, SHARE * (self.clock() - began))
        if not complete and began - self._began >= UNRECOGNIZED_AFTER:
            self._tell_unrecognized()
        if ready and (is_idle or self.commits.away):
            settled = [saved for saved in complete if saved in ready or self._done.get(saved.name) == saved.files]
            self._submit(committed_together(ready, settled))

    def _tell_unrecognized(self) -> None:
        self._began = float("inf")
        if files := sorted(files_in(self.folder), key=lambda file: file.changed_at):
            names = ", ".join(file.name for file in files[-3:])
            self._warn(
                f"nothing is committed yet: none of the files in {self.folder}, such as {names}, is a complete "
                'checkpoint. If one should be, see "Your script saves its own checkpoints" in the documentation'
            )

    def wait(self, timeout: float = 0.0) -> bool:
        """Whether all that was submitted is committed, after at most `timeout` seconds. Raises a commit's error."""
        try:
            return self.commits.wait(timeout)
        except OSError as error:  # The program has removed its folder, and the copy in it.
            self._warn(f"a checkpoint was removed before it was committed: {error}")
            return True

    def _claim(self) -> None:
        """Note whose checkpoints these are. The program may have removed the note with the folder."""
        try:
            claim(self.member, self.folder)
        except OSError as error:
            self._warn(f"{self.folder} cannot be written: {error}")

    def _is_new(self, saved: Saved) -> bool:
        return self._done.get(saved.name) != saved.files and saved.changed_at >= self._newest

    def _is_at_rest(self, saved: Saved) -> bool:
        files, since = self._seen.get(saved.name, ((), 0.0))
        if files != saved.files:
            since = self.clock()
            self._seen[saved.name] = (saved.files, since)
        return self.clock() - since >= (HALF_SETTLED_AFTER if saved.half else SETTLED_AFTER)

    def _submit(self, parts: list[Saved]) -> None:
        saved = joined(parts)
        if not has_state(saved):
            return
        step = self.step + 1 if saved.step is None else saved.step
        if problem := self._problem(saved, step):
            self._warn(problem)
            self._skip(*parts)
            return
        for link in saved.left_out:
            self._warn(f"{link} links to a folder: it is not part of the commit")
        try:
            files = copied(self.folder, saved)
        except Changed:
            return  # The next scan finds the newest version.
        except OSError as error:
            self._warn(f"{saved.name} cannot be read: {error}")
            return
        self._skip(*parts)
        self._newest = saved.changed_at
        self.step, self.total = step, saved.total or self.total
        stops = self.member.listener.heard is not None
        self.commits.submit(Checkpoint(step, files, saved.total, last=stops))
        self.member.heartbeat.beat(step, self.total, at_once=True)

    def _problem(self, saved: Saved, step: int) -> str:
        """Why this checkpoint cannot be committed; "" if it can."""
        before = [] if self.start.saved is None else self.start.saved.position[0]
        if (saved.position[0], step) < (before, self.step) and not self._newest:
            return (
                f"{saved.name} is not committed: it is of step {step}, and step {self.step} is committed. Does the "
                f"program continue from its checkpoint? Pass its path with {CHECKPOINT} in an argument"
            )
        if len(saved.files) > MAX_FILES:
            return f"{saved.name} is not committed: it has {len(saved.files)} files, and {MAX_FILES} is the maximum"
        if not all(file.name.isprintable() for file in saved.files):
            return f"{saved.name} is not committed: buckets refuse control characters in file names"
        return ""

    def _warn(self, problem: str) -> None:
        if problem not in self._warned:
            self._warned.add(problem)
            _log.warning("%s", problem)
