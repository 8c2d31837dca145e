"""The Trainer of transformers, and those of TRL, which are subclasses of it.

    trainer = Trainer(…, callbacks=[train.huggingface.callback()])
    trainer.train(resume_from_checkpoint=train.huggingface.checkpoint())

The Trainer saves after a step and the callback commits the checkpoint: at the job's interval, at an eviction notice on
any rank, and after the last step. At a notice `train` then ends with `Interrupted` (exit code 75). Each rank commits
the files that only it has written, so the ranks may share `output_dir` or have disks of their own. Checkpoints that the
Trainer would not have saved by itself are removed from `output_dir`. Its own `save_steps` stay as they are.

The Trainer itself restores the random state and the position in the data. So that the weights do not depend on where
the training was interrupted, the last step of an epoch is committed after its evaluation, and neither an evaluation nor
the loading of data changes the random state of the training.

With Ray's `RayTrainReportCallback` this callback is not needed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spotladder.checkpoints.upload import files_below
from spotladder.errors import InvalidSpec
from spotladder.extras import require
from spotladder.train import loading, randomness
from spotladder.train.framework_loop import FrameworkLoop, loop_of_current
from spotladder.train.putback import link_or_copy
from spotladder.train.shared_files import rank_in


def checkpoint() -> str | None:
    """The folder of the newest commit, for `resume_from_checkpoint`; None at the first start. Every rank must call it.

    The files stay until the first step has ended.
    """
    found = loop_of_current().resume()
    return str(found.merged()) if found else None


def callback() -> Any:
    """The callback for one Trainer. Raises EnvironmentFailure if transformers is not installed."""
    require("torch", "transformers")
    from transformers import TrainerCallback

    return type("SpotladderCallback", (_Hooks, TrainerCallback), {})()


class _Hooks:
    """The hooks of the callback, without the base class of transformers."""

    _restore_random: Callable[[], None] | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:
        if args.save_only_model:
            raise InvalidSpec("save_only_model: no training continues from such a checkpoint: remove it")
        self._loop: FrameworkLoop = loop_of_current()
        if found := self._loop.resume():
            restore_renamed(model, found.merged())
        remedy = "call trainer.train(resume_from_checkpoint=train.huggingface.checkpoint())"
        self._loop.begin(state.global_step, state.max_steps, remedy)
        self._own = False
        self._restore_random = randomness.keep()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, *, train_dataloader: Any, **_: Any) -> None:
        loading.seed_batches(train_dataloader, args.seed + int(state.epoch or 0))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._restore_random = randomness.keep()
        # It stays due if a Trainer that keeps only the best checkpoints has refused the last request.
        if self._loop.is_due(state.global_step) and not _evaluated_next(args, state, control):
            self._ask_to_save(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._loop.due:
            self._ask_to_save(control)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._restore_random:
            self._restore_random()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._restore_random = None

    def _ask_to_save(self, control: Any) -> None:
        self._own = not control.should_save
        control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not self._loop.due:
            return
        step, job = state.global_step, self._loop.job
        saved = Path(args.output_dir, f"checkpoint-{step}")
        job.meet(f"saved {step}")
        logged: dict[str, Any] = next((entry for entry in reversed(state.log_history) if "loss" in entry), {})
        with self._loop.commit(step, logged) as folder:
            link_own_files(saved, folder, job.rank, job.world_size)
            if self._own:
                job.meet(f"linked {step}")
                if args.local_process_index == 0:
                    shutil.rmtree(saved, ignore_errors=True)


def _evaluated_next(args: Any, state: Any, control: Any) -> bool:
    """Whether the epoch ends with this step, and the Trainer then evaluates and can save: the checkpoint has the
    result, on which the learning rate and the best model may depend."""
    ends = control.should_training_stop or control.should_epoch_stop or float(state.epoch).is_integer()
    return bool(ends and args.eval_strategy == "epoch" and args.save_strategy != "best")


def restore_renamed(model: Any, folder: Path) -> None:
    """Restore weights that the Trainer has saved under the names of the Hub and does not find again, as those of ViT
    and of mixtures of experts: it leaves them as they were initialized (transformers issue 48805)."""
    from safetensors import safe_open
    from transformers import PreTrainedModel

    if (
        not isinstance(model, PreTrainedModel)
        or any(folder.glob("pytorch_model_fsdp*"))
        or any(folder.glob("global_step*"))
    ):
        return  # FSDP and DeepSpeed save the names of the model.
    names: set[str] = set()
    for file in folder.glob("model*.safetensors"):
        with safe_open(file, "pt") as saved:
            names.update(saved.keys())
    if names - model.state_dict().keys():
        model.load_state_dict(type(model).from_pretrained(folder, config=model.config, dtype=model.dtype).state_dict())


def link_own_files(saved: Path, folder: Path, rank: int, size: int) -> None:
    """Add to `folder` the files of the Trainer's checkpoint that are this rank's: those with its number in their name,
    and on rank 0 those without the number of a rank."""
    for name, file in files_below(saved):
        number = rank_in(name)
        if (0 if number is None or number >= size else number) == rank:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            link_or_copy(file, target)
