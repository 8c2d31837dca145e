"""The checkpoints in a folder that a program writes, recognized by the marks that its framework leaves.

| framework | a checkpoint | complete when |
| --- | --- | --- |
| Hugging Face's Trainer | the folder `checkpoint-N` | it has `trainer_state.json` |
| PyTorch DCP | a folder | it has `.metadata`, which is written last |
| Accelerate | a folder | it has `random_states_0.pkl` |
| Orbax | a folder | it has `_CHECKPOINT_METADATA` or `commit_success.txt`, and its final name |
| DeepSpeed | a folder with `mp_rank_…_model_states.pt` | the file `latest` beside it names it or a later one |
| others | a folder such as `step-7` with files of states | all of these are complete |
| others | a file of a state | a zip file has its end |

A file is that of a state by its format, such as `.pt` and `.h5`. Data may have the others, such as `.zip` and `.pkl`:
their names tell it, as that of `model_800_steps.zip` and `latest.pkl` do, or that of their folder.

Files of one folder and one step are one checkpoint. Files without a number in their names, such as `last.pt`, `best.pt`
and those in which a framework finds the name of the newest checkpoint, are one as well, which is committed together
with the newest other one: a program may resume from either. The marks say that the framework has finished, not that the
files are at rest: the caller waits until they no longer change.
"""

from __future__ import annotations

import json
import os
import pickletools
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

OWN_FOLDER = ".spotladder"
"""The folder inside the program's folder for files that are being copied, and for checkpoints of other runs."""

LARGEST_STATE = 64 << 20
"""Bytes of the largest `trainer_state.json` that is read, and of the beginning of a pickle that is searched."""

_HUGGING_FACE = re.compile(r"checkpoint-(\d{1,15})")
_MARKS = frozenset({".metadata", "random_states_0.pkl", "_CHECKPOINT_METADATA", "commit_success.txt"})
_UNFINISHED = ".orbax-checkpoint-tmp"
_DEEPSPEED = re.compile(r"(?:mp_rank_\d+_model|_optim)_states\.pt$")
_LONGEST_NAME = 255
_STEP_FOLDER = re.compile(r"(?:global)?[_-]?(?:step|iter|iteration|epoch|checkpoint|ckpt)[=_-]?\d{1,15}", re.IGNORECASE)
_STAGE = re.compile(r"(?:fold|phase|stage)[=_-]?(\d{1,15})", re.IGNORECASE)
_RANK = re.compile(r"(?:rank|world_size)[=_-]?\d+", re.IGNORECASE)
_BESIDE = frozenset({"checkpoint", "last_checkpoint", "training_metadata.json"})
"""Files in which TensorFlow, Detectron2, MMEngine and Keras' BackupAndRestore find what they resume from."""

_STATE = re.compile(r"\.(?:ckpt|keras|h5|pth?|pth\.tar|th|eqx|pd(?:params|opt|states)|ubj|cbm|cbsnapshot)$")
_STATE_OR_DATA = re.compile(r"\.(?:bin|index|meta|data-\d+-of-\d+|joblib|msgpack|npz|pickle|pkl|safetensors|zip)$")
_PARTS = re.compile(r"\.(?:index|meta|data-\d+-of-\d+)$")
"""TensorFlow reads all files of a checkpoint by their name without this."""

_TELLING = re.compile(
    r"(?<![a-z])(?:best|checkpoint|ckpt|epoch|iter|iteration|last|latest|step)s?(?![a-z])", re.IGNORECASE
)
_STEP_AT_END = re.compile(rf"(?:^|.*[._-]){_STEP_FOLDER.pattern}", re.IGNORECASE)
_OF_ACCELERATE = re.compile(r"(?:optimizer|sampler|scheduler)(?:_\d+)?\.bin")
_OF_TRAINER = re.compile(r"training_args\.bin|rng_state.*\.pth")
"""What the Trainer of Hugging Face writes before `trainer_state.json`, besides the model and the optimizer."""

_LATEST = "latest"
"""DeepSpeed writes it when all ranks have saved, and reads it to find the newest checkpoint."""

_TRACKER = "latest_checkpointed_iteration.txt"
"""The same of Megatron and verl, with the step."""

_NUMBERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"step[=_-]?(\d{1,15})",
        r"iter(?:ation)?[=_-]?(\d{1,15})",
        r"(?:checkpoint|ckpt)[=_-](\d{1,15})",
        r"epoch[=_-]?(\d{1,15})",
        r"(?<!\d)(?<!\d\.)(\d{1,15})(?!\d|\.\d)",
    )
)
_MAX_OPERATIONS = 100_000


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A regular file, or a link to one. `name` is relative to the program's folder; `changed_at` is in nanoseconds."""

    name: str
    size: int
    changed_at: int


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint of the program. `name` is its folder, or that of its newest file. `roots` are that folder, or all of
    its files. `step` is None if nothing tells it; `total` is 0 if unknown. `proven`: complete by a mark of the
    framework, whatever has happened to the program. `left_out` are links to folders, which are not part of it.
    `pointer` is the file beside the folder in which the framework finds it, by `pointer_text`; a copy of the checkpoint
    has one. `loose`: its name, or those of its files, have no number. `reached` is the largest step inside its files,
    -1 if unknown; a folder with the mark of a framework has the largest one. `half`: the program has written more files
    for each other step, and may not have written all of this one."""

    name: str
    roots: tuple[str, ...]
    files: tuple[SavedFile, ...]
    step: int | None
    total: int
    complete: bool
    proven: bool
    left_out: tuple[str, ...] = ()
    pointer: str = ""
    pointer_text: str = ""
    loose: bool = False
    reached: int = -1
    half: bool = False

    @property
    def changed_at(self) -> int:
        """When its newest file was changed, in nanoseconds since the epoch."""
        return max((file.changed_at for file in self.files), default=0)

    @property
    def position(self) -> tuple[list[int], int]:
        """The numbers of the fold or stage in its name, in each of which the steps begin again, and its step."""
        return [int(number) for number in _STAGE.findall(self.name)], self.step or 0


def saved_in(folder: Path) -> list[Saved]:
    """All checkpoints below the folder, the newest last. Files that vanish meanwhile are no error."""
    all_saved = sorted(_below(folder, ""), key=lambda saved: (saved.changed_at, saved.step or 0, saved.name))
    half = _half(all_saved)
    return [replace(saved, half=True, proven=False) if saved in half else saved for saved in all_saved]


def files_in(folder: Path) -> list[SavedFile]:
    """All files of the program in the folder."""
    return [file for file in _files(folder, "")[0] if not file.name.startswith(f"{OWN_FOLDER}/")]


def _half(all_saved: list[Saved]) -> list[Saved]:
    """The checkpoints of the newest step if all other steps have more files of states. The marks of frameworks are more
    exact."""
    steps: dict[int | None, list[Saved]] = defaultdict(list)
    for saved in all_saved:
        if not saved.loose and saved.reached < _LARGEST_STEP:
            steps[saved.step] = [*steps.pop(saved.step, []), saved]
    *others, newest = [
        sum(_is_state(file.name) for saved in parts for file in saved.files) for parts in steps.values()
    ] or [0]
    return list(steps.values())[-1] if newest < min(others, default=0) else []


def furthest(all_saved: Iterable[Saved]) -> Saved:
    """The checkpoint from which a program continues. Times do not tell it: `best.pt` may be newer than `epoch-9.pt` and
    have only weights, and files that were put back have new times. Of equal ones it is the last by name, as `last.pt`
    beside `best.pt`."""
    return max(all_saved, key=lambda saved: (saved.reached, not saved.loose, *saved.position, saved.name))


def committed_together(ready: list[Saved], settled: list[Saved]) -> list[Saved]:
    """The checkpoints of the next commit: those of the newest step, and the loose ones that were written since the step
    before. The newest are the last in both lists; those that are `ready` are new, and `settled` as well."""
    others = [saved for saved in settled if not saved.loose]
    new = [saved for saved in ready if not saved.loose]
    newest = (new or others or ready)[-1]
    earlier = [saved for saved in others if saved.step != newest.step and saved.changed_at < newest.changed_at]
    before = max((saved.changed_at for saved in earlier), default=0)
    together = [saved for saved in settled if saved.changed_at > before and (saved.loose or saved.step == newest.step)]
    return together if new or not furthest(together).loose else [saved for saved in together if saved.loose]


def joined(all_saved: list[Saved]) -> Saved:
    """These checkpoints as one, with the name and the step of the furthest."""
    pointed = next((saved for saved in all_saved if saved.pointer), all_saved[0])
    return replace(
        furthest(all_saved),
        pointer=pointed.pointer,
        pointer_text=pointed.pointer_text,
        roots=tuple(root for saved in all_saved for root in saved.roots),
        files=tuple(file for saved in all_saved for file in saved.files),
        left_out=tuple(link for saved in all_saved for link in saved.left_out),
    )


def has_state(saved: Saved) -> bool:
    """Whether it has more than the files in which a framework finds what it resumes from."""
    return not all(map(_is_beside, saved.files))


def _is_state(name: str) -> bool:
    """Whether this file in a folder of a checkpoint is that of a state."""
    return bool(_STATE.search(name) or _STATE_OR_DATA.search(name))


def _is_checkpoint(name: str) -> bool:
    """Whether this file is a checkpoint, or a part of one, whatever its folder is."""
    if name.startswith("."):
        return False
    telling = _STATE_OR_DATA.search(name) and _TELLING.search(name)
    return bool(name in _BESIDE or _STATE.search(name) or telling or _STEP_AT_END.fullmatch(name))


def _is_beside(file: SavedFile) -> bool:
    return file.name.rpartition("/")[2] in _BESIDE


def is_of_one_step(name: str) -> bool:
    """Whether the program writes the next checkpoint under another name: this one is that of a step. Other numbers, as
    in `resnet50.pth`, may stay the same."""
    return _labelled(name) is not None or name.rpartition("/")[2].isdecimal()


def number_of(name: str) -> int | None:
    """The step, or else the epoch, in the name of a checkpoint; None if it has no number but that of a rank."""
    return _number(name, _NUMBERS)


def _labelled(name: str) -> int | None:
    """The number in the name that is called a step or the like."""
    return _number(name, _NUMBERS[:-1])


def _number(name: str, patterns: Iterable[re.Pattern[str]]) -> int | None:
    stem = _RANK.sub("", _STATE.sub("", _STATE_OR_DATA.sub("", name.rpartition("/")[2])))
    for pattern in patterns:
        if found := pattern.findall(stem):
            return int(found[-1])
    return None


def _below(folder: Path, at: str) -> Iterator[Saved]:
    groups: dict[int | None, list[SavedFile]] = defaultdict(list)
    for entry in _entries(folder / at):
        name = _joined(at, entry.name)
        if entry.is_dir(follow_symlinks=False):
            if entry.name.startswith(".") or _UNFINISHED in entry.name:
                continue
            saved = _folder(folder, name)
            if saved is not None:
                yield saved
            else:
                yield from _below(folder, name)
        elif _is_checkpoint(entry.name):
            file = file_at(folder, name)
            if file is not None:
                groups[_step(folder, file)].append(file)
    for number, files in groups.items():
        yield _group(folder, number, files)


def _group(folder: Path, number: int | None, files: list[SavedFile]) -> Saved:
    """The checkpoint of these files, whose names have this number."""
    reached = {file: _step_inside(folder, file) for file in files}
    files.sort(key=lambda file: (not _is_beside(file), reached[file], file.changed_at, file.name))
    whole = {file.name: _is_beside(file) or _is_whole(folder, file) for file in files}
    complete, proven = all(each is not False for each in whole.values()), all(whole.values())
    names, furthest_inside = tuple(whole), reached[files[-1]]
    known = furthest_inside < 0 or any(_labelled(name) is not None for name in names)
    step = number if known else furthest_inside
    name = _PARTS.sub("", names[-1])
    return Saved(name, names, tuple(files), step, 0, complete, proven, loose=number is None, reached=furthest_inside)


def _folder(folder: Path, at: str) -> Saved | None:
    """The checkpoint that this folder is; None if it is another folder."""
    name, inside = at.rpartition("/")[2], {entry.name for entry in _entries(folder / at)}
    deepspeed = any(map(_DEEPSPEED.search, inside))
    marked = deepspeed or not _MARKS.isdisjoint(inside)
    if not marked and not _STEP_FOLDER.fullmatch(name):
        return None
    files, left_out = _files(folder, at)
    parts = [file for file in files if _is_state(file.name)]
    if marked or _awaits_mark(name, inside, parts):
        saved = _marked(folder, at, files, parts, complete=marked)
    elif not parts or any(_labelled(part.name) is not None for part in parts):
        return None
    else:
        group = _group(folder, number_of(at), parts)
        saved = replace(group, step=number_of(at), name=group.name if len(parts) == 1 else at)
    saved = replace(saved, roots=(at,), files=tuple(files), left_out=tuple(left_out))
    return _with_pointer(folder, at, saved, _LATEST if deepspeed else _TRACKER)


def _awaits_mark(name: str, inside: set[str], parts: list[SavedFile]) -> bool:
    """Whether Accelerate or the Trainer of Hugging Face may still be writing this folder: they begin with the model."""
    if any(map(_OF_ACCELERATE.fullmatch, inside)):
        return True
    if _HUGGING_FACE.fullmatch(name):
        more = any(_is_state(each) and "model" not in each for each in inside)
        return "trainer_state.json" in inside or not more or any(map(_OF_TRAINER.fullmatch, inside))
    names = [part.name.rpartition("/")[2] for part in parts]
    return bool(names) and all("model" in each and not _STATE.search(each) for each in names)


def _marked(folder: Path, at: str, files: list[SavedFile], parts: list[SavedFile], *, complete: bool) -> Saved:
    """The checkpoint in a folder of a framework that marks what is `complete`."""
    step, total = number_of(at), 0
    if state := next((file for file in files if file.name == f"{at}/trainer_state.json"), None):
        progress = _trainer_state(folder, state)
        complete = progress is not None
        step, total = progress or (step, 0)
    complete = complete and not any(_is_whole(folder, part) is False for part in parts)
    last = max(files, key=lambda file: file.changed_at, default=None)
    overwritten = step is None and last is not None and last.name.rpartition("/")[2] not in _MARKS
    proven = complete and not overwritten  # The mark may be that of the checkpoint before it.
    return Saved(at, (), (), step, total, complete, proven, loose=step is None, reached=_LARGEST_STEP)


def _with_pointer(folder: Path, at: str, saved: Saved, name: str) -> Saved:
    """The checkpoint in the folder `at` with the file beside it that names the newest one, if the framework has it."""
    pointer = _joined(at.rpartition("/")[0], name)
    text = at.rpartition("/")[2] if name == _LATEST else str(saved.step)
    newest = _name_in(folder / pointer)
    if not newest and name != _LATEST:
        return saved
    named = text == newest
    complete = saved.complete and (named or (saved.step or 0) < (number_of(newest) or 0))
    roots = (*saved.roots, pointer) if named else saved.roots
    proven = saved.proven and complete
    return replace(saved, roots=roots, complete=complete, proven=proven, pointer=pointer, pointer_text=text)


def _files(folder: Path, at: str) -> tuple[list[SavedFile], list[str]]:
    """The files below a folder, and the links to folders, which are not followed: they may lead anywhere."""
    files, links = [], []
    for entry in _entries(folder / at):
        name = _joined(at, entry.name)
        if entry.is_dir(follow_symlinks=False):
            more, further = _files(folder, name)
            files += more
            links += further
        elif (file := file_at(folder, name)) is not None:
            files.append(file)
        elif entry.is_symlink():
            links.append(name)
    return files, links


def _name_in(file: Path) -> str:
    """The name of a checkpoint that DeepSpeed has written into this file; "" if it cannot be read."""
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.read(_LONGEST_NAME).strip()
    except (OSError, ValueError):
        return ""


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def file_at(folder: Path, name: str) -> SavedFile | None:
    """The file as it is now; None if it does not exist, or is no regular file or link to one."""
    path = folder / name
    try:
        found, own = path.stat(), path.lstat()
    except OSError:
        return None
    changed_at = max(found.st_mtime_ns, own.st_mtime_ns)
    return SavedFile(name, found.st_size, changed_at) if path.is_file() else None


def _step(folder: Path, file: SavedFile) -> int | None:
    """The step of a checkpoint in a single file. Lightning writes it into the file, whatever its name is."""
    inside = _step_inside(folder, file) if file.name.endswith(".ckpt") else -1
    return number_of(file.name) if inside < 0 else inside


@lru_cache(maxsize=4096)
def _trainer_state(folder: Path, file: SavedFile) -> tuple[int, int] | None:
    """`global_step` and `max_steps` of a `trainer_state.json`; None if it is not complete."""
    try:
        if file.size > LARGEST_STATE:
            return None
        state = json.loads((folder / file.name).read_text(encoding="utf-8"))
        step, total = int(state["global_step"]), max(0, int(state.get("max_steps") or 0))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    return (step, total) if 0 <= step < _LARGEST_STEP and total < _LARGEST_STEP else None


@lru_cache(maxsize=4096)
def _is_whole(folder: Path, file: SavedFile) -> bool | None:
    """Whether a zip file has its end; None for another format, which has no such mark."""
    try:
        with (folder / file.name).open("rb") as opened:
            if opened.read(2) == b"PK":
                return zipfile.is_zipfile(folder / file.name)
            return None if file.size else False
    except OSError:
        return False


@lru_cache(maxsize=4096)
def _step_inside(folder: Path, file: SavedFile) -> int:
    """The step in the pickle of a file of torch.save, which is read as data and not loaded; -1 if it tells none."""
    found: dict[str, int] = {}
    try:
        with zipfile.ZipFile(folder / file.name) as archive:
            pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            with archive.open(pickled) as data:
                operations = pickletools.genops(data.read(LARGEST_STATE))
                for key, number in _numbers(islice(operations, _MAX_OPERATIONS)):
                    found.setdefault(key, number)
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile, zlib.error, RuntimeError, EOFError):
        pass
    return next((found[key] for key in _STEPS if key in found), -1)


def _numbers(operations: Iterable[tuple[pickletools.OpcodeInfo, Any, int | None]]) -> Iterator[tuple[str, int]]:
    """The numbers that directly follow one of the names `_STEPS` in a pickle, which writes a name once and refers to it
    later by its number in the memo."""
    memo: dict[int, str] = {}
    memoized, name = 0, ""
    for operation, value, _ in operations:
        if operation.name in _MEMOIZING:
            if name:
                memo[memoized if value is None else value] = name
            memoized += 1
            continue
        if name and operation.name in _INTEGERS and 0 <= value < _LARGEST_STEP:
            yield name, value
        name = memo.get(value, "") if operation.name in _RECALLING else value if value in _STEPS else ""


_LARGEST_STEP = 10**15
_STEPS = ("global_step", "step", "iteration", "iter_num", "epoch")
"""Names of the step in what a program saves, the most exact first."""

_INTEGERS = frozenset({"BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1"})
_MEMOIZING = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
_RECALLING = frozenset({"GET", "BINGET", "LONG_BINGET"})
