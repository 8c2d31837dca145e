"""Copies checkpoints out of a program's folder for a commit, and the newest commit back into it."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spotladder.atomic import write_text
from spotladder.errors import InvalidSpec
from spotladder.train.found import Found, find
from spotladder.train.membership import Member
from spotladder.train.saved import OWN_FOLDER, Saved, file_at, furthest, has_state, is_of_one_step, saved_in

_log = logging.getLogger("spotladder.train")


class Changed(Exception):
    """The program has changed or removed the checkpoint while it was copied."""


def copied(folder: Path, saved: Saved) -> Path:
    """A folder with the files of the checkpoint at this moment, below their names in the program's folder.

    Files whose name has a step are linked: the program writes the next checkpoint under another name, and may remove
    this one at any time. Others may be overwritten in place, so they are copied. Raises Changed, OSError.
    """
    target = Path(tempfile.mkdtemp(prefix="commit-", dir=own_folder(folder)))
    folders = set(saved.roots) - {file.name for file in saved.files}
    unchanged = False
    try:
        for file in saved.files:
            root = next((root for root in folders if file.name.startswith(f"{root}/")), file.name)
            (target / file.name).parent.mkdir(parents=True, exist_ok=True)
            place = link_or_copy if is_of_one_step(root) else shutil.copy2
            place(folder / file.name, target / file.name)
        if saved.pointer:
            (target / saved.pointer).write_text(saved.pointer_text, encoding="utf-8")
        unchanged = all(file_at(folder, file.name) == file for file in saved.files)
    except FileNotFoundError:
        pass
    finally:
        if not unchanged:
            shutil.rmtree(target, ignore_errors=True)
    if not unchanged:
        raise Changed(saved.name)
    return target


def own_folder(folder: Path) -> Path:
    """The folder for spotladder's own files, created if it does not exist."""
    own = folder / OWN_FOLDER
    own.mkdir(parents=True, exist_ok=True)
    return own


def link_or_copy(source: Path, target: Path) -> None:
    """Link the file, or copy it to another file system or one without links. Raises OSError."""
    try:
        os.link(source.resolve(strict=True), target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(source, target)


@dataclass(frozen=True, slots=True)
class PutBack:
    """The newest commit, and the checkpoint from which the program continues: that of the commit, or one of the
    `newer`, which this run has written into the folder later and has not committed. `found` is None if the log has no
    commit, and `saved` is None if the program begins from its start."""

    found: Found | None
    saved: Saved | None
    newer: tuple[Saved, ...] = ()

    def path_in(self, folder: Path) -> str | None:
        """The path of the checkpoint from which the program continues."""
        return None if self.saved is None else str(folder / self.saved.name)

    def is_committed(self, saved: Saved) -> bool:
        """Whether this checkpoint, which is in the folder when the program starts, needs no commit."""
        return all(saved.files != newer.files for newer in self.newer)


def put_back(member: Member, folder: Path) -> PutBack:
    """Put the newest commit into the program's folder. The same commit on every rank.

    Checkpoints of other runs, and torn ones, are moved aside, so that a program that searches the folder finds neither.
    Without them and without a commit the folder stays as it is: many programs refuse to begin in one that has files.
    """
    member.begin()
    is_ours = not folder.exists()
    own = own_folder(folder)
    for stale in (*own.glob("commit-*"), *own.glob("resume-*")):
        if member.world.size == 1:  # The folder may be shared with the other ranks.
            shutil.rmtree(stale, ignore_errors=True)
    incoming = Path(tempfile.mkdtemp(prefix="resume-", dir=own))
    try:
        found = find(member.log, member.channel, member.world, incoming, 1, member.retry)
        if member.world.rank > 0:
            member.channel.exchange("put back", None, lambda _: None)
        done = _arrange(member, folder, found)
        if member.world.rank == 0:
            member.channel.exchange("put back", None, lambda _: None)
        return done
    finally:
        shutil.rmtree(incoming, ignore_errors=True)
        with suppress(OSError):  # Not empty: the program does not begin at its start.
            own.rmdir()
            if is_ours:
                folder.rmdir()


def claim(member: Member, folder: Path) -> None:
    """Note that the checkpoints in the folder are those of this run. Raises OSError."""
    mark, run = folder / OWN_FOLDER / "run", _run(member)
    if not (mark.is_file() and mark.read_text(encoding="utf-8") == run):
        write_text(own_folder(folder) / mark.name, run)


def _run(member: Member) -> str:
    return f"{member.log.uri} {member.environment.uid}\n"


def _arrange(member: Member, folder: Path, found: Found | None) -> PutBack:
    """Put the commit, or a newer checkpoint of this run, into the program's folder, and move aside what could mislead
    the program."""
    own, here = folder / OWN_FOLDER, saved_in(folder)
    mark = own / "run"
    if here and not (mark.is_file() and mark.read_text(encoding="utf-8") == _run(member)):
        aside = Path(tempfile.mkdtemp(prefix="before-", dir=own))
        _move(here, folder, aside)
        _log.warning(
            "%s has checkpoints of another run: they are in %s now, remove them if you do not need them", folder, aside
        )
        here = []
    if here or found is not None:
        claim(member, folder)
    newer = [saved for saved in here if found is None or _is_newer(saved, found, here)]
    torn = [saved for saved in here if not saved.complete or (saved in newer and not saved.proven)]
    if torn:
        shutil.rmtree(own / "torn", ignore_errors=True)
        _move(torn, folder, own / "torn")
        names = ", ".join(saved.name for saved in torn)
        _log.warning("%s may be incomplete, because the program was killed: moved to %s", names, own / "torn")
    kept = [
        saved
        for saved in here
        if saved not in torn
        and saved.proven
        and has_state(saved)
        and (saved in newer or (found and saved.step == found.step))
    ]
    best = furthest(kept) if kept else None
    if found is None or (best and not best.loose and (best in newer or not torn)):
        return PutBack(found, best, tuple(newer))
    incoming = saved_in(found.path)
    if best and all(saved.loose for saved in incoming):
        return PutBack(found, best, tuple(newer))
    if not incoming:
        raise InvalidSpec(
            f"the newest commit, of step {found.step}, has no checkpoint of a program's own folder: remove the field, "
            "or continue in a new checkpoint folder",
            where="checkpoints.programFolder",
        )
    _move(incoming, found.path, folder)
    _log.info("put back step %d of attempt %d into %s", found.step, found.attempt, folder)
    return PutBack(found, furthest(incoming))


def _is_newer(saved: Saved, found: Found, here: list[Saved]) -> bool:
    """Whether it was written after the commit, whose steps may have begun again: its files may still be `here`."""
    if saved.step is None:
        return saved.changed_at > found.commit.at * 1e9
    committed_at = max((other.changed_at for other in here if other.step == found.step), default=0)
    return saved.step > found.step and saved.changed_at >= committed_at


def _move(all_saved: list[Saved], source: Path, target: Path) -> None:
    """Move checkpoints into another folder, each file or folder in one step on one file system."""
    for saved in all_saved:
        for root in saved.roots:
            place = target / root
            place.parent.mkdir(parents=True, exist_ok=True)
            replaced = place.with_name(f".{place.name}.replaced")
            shutil.rmtree(replaced, ignore_errors=True)
            if place.is_dir() and not place.is_symlink():
                place.rename(replaced)  # A folder cannot replace another one that has files.
            shutil.move(source / root, place)  # A volume may be mounted at a part of the program's folder.
            shutil.rmtree(replaced, ignore_errors=True)
