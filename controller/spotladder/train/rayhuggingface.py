"""transformers' Trainer in a worker of Ray Train, with an unmodified script and Ray's own `RayTrainReportCallback`.

A default callback of transformers, which precedes the callbacks of the program:
1. At a notice to any rank all ranks save after the same step, and not only at the next `save_steps`.
2. After a save all ranks wait until each has written its files: Ray's callback copies the folder that they share, on
   every rank.
3. The report after a save has the trainer's own step. The metrics are of its last log, which may be older.
4. The report after a save has the checkpoint of this save. Ray's callback takes the highest step in the folder, which
   may be of an attempt that was lost, and unfinished.

And a Trainer that resumes restores the weights that it has saved under other names, see `huggingface`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spotladder.train.huggingface import restore_renamed

if TYPE_CHECKING:
    from spotladder.train.rayreports import Routed
    from spotladder.train.session import Job

_log = logging.getLogger("spotladder.train")

TRAINER = "transformers.trainer"


def save_at_notices(job: Job, routed: Routed) -> None:
    """Add the callback to every Trainer that this process creates, once it imports transformers."""
    after_import(TRAINER, lambda trainer: _add(trainer, job, routed))


def _add(trainer: Any, job: Job, routed: Routed) -> None:
    saves, saved, last = 0, "", trainer.get_last_checkpoint

    class SaveAtNotice(trainer.TrainerCallback):  # type: ignore[misc]
        """Saves at notices, and lets no rank read what another one still writes."""

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            if args.save_strategy != "no" and job.saves_now(state.global_step):
                control.should_save = True
            return control

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            nonlocal saves, saved
            routed.trained_to = int(state.global_step)
            saved = f"checkpoint-{state.global_step}"
            if args.world_size == job.world_size > 1:  # Else each rank trains a model of its own.
                saves += 1
                job.meet(f"saved {saves}")
            return control

    def newest(folder: str) -> Any:
        """The checkpoint that this process has saved last, or what the folder has."""
        path = Path(folder, saved)
        return str(path) if saved and path.is_dir() else last(folder)

    load = getattr(trainer.Trainer, "_load_from_checkpoint", None)  # transformers has no other extension point
    trainer.get_last_checkpoint = newest
    trainer.DEFAULT_CALLBACKS.append(SaveAtNotice)
    if load is None:
        _log.warning("%s: this version is not known, so weights saved under other names are not restored", TRAINER)
        return

    def load_all(self: Any, resume_from_checkpoint: str, model: Any = None) -> None:
        load(self, resume_from_checkpoint, model)
        restore_renamed(self.model if model is None else model, Path(resume_from_checkpoint))

    trainer.Trainer._load_from_checkpoint = load_all  # noqa: SLF001


def after_import(name: str, do: Callable[[ModuleType], None]) -> None:
    """Call `do` with this module, now or when it has been imported. An error of `do` is logged."""

    def guarded(module: ModuleType) -> None:
        try:
            do(module)
        except Exception as error:  # noqa: BLE001 – another version of the library: the program works without it
            _log.warning("%s: this version is not known, so it saves only at its own interval: %r", name, error)

    if name in sys.modules:
        guarded(sys.modules[name])
    else:
        sys.meta_path.insert(0, _AfterImport(name, guarded))


class _AfterImport(MetaPathFinder):
    """Finds one module as Python does, and calls `do` when it has been executed."""

    def __init__(self, name: str, do: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._do = do

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def executed(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._do(module)

        try:
            spec.loader.exec_module = executed  # type: ignore[method-assign]
        except AttributeError:
            return None  # Not a loader of files: the program imports the module without the callback.
        return spec
