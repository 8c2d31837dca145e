"""What a training script shows about itself. The script is parsed, and never imported or run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from spotladder.errors import InvalidSpec


class Loop(StrEnum):
    """What owns the training loop."""

    LIBRARY = "spotladder.train"
    RAY = "Ray Train"
    LIGHTNING = "Lightning"
    HUGGING_FACE = "Hugging Face's Trainer"
    KERAS = "Keras"
    OWN = "the script itself"


_TRAINERS = (
    (Loop.RAY, ("ray",), ("TorchTrainer", "TensorflowTrainer", "JaxTrainer", "XGBoostTrainer", "LightGBMTrainer",
                          "DataParallelTrainer", "Tuner")),
    (Loop.LIGHTNING, ("lightning", "pytorch_lightning"), ("Trainer",)),
    (Loop.HUGGING_FACE, ("transformers", "trl"), ("Trainer", "Seq2SeqTrainer", "SFTTrainer", "DPOTrainer",
                                                  "GRPOTrainer", "RewardTrainer")),
    (Loop.KERAS, ("keras", "tensorflow"), ("fit",)),
)  # fmt: skip
"""For each owner of a loop, the packages of which one is imported, and the calls of which one is made."""

_SAVES = frozenset({"save", "save_state", "save_checkpoint", "save_model", "save_weights", "save_pretrained"})
_STEPS = frozenset({"backward", "apply_gradients", "apply_updates", "train_on_batch"})
_RESUME = ("--resume", "--resume_from", "--resume-from", "--resume_from_checkpoint", "--resume-from-checkpoint",
           "--checkpoint", "--ckpt", "--ckpt_path", "--ckpt-path", "--load", "--restore")  # fmt: skip
_OUTPUT = ("--output_dir", "--output-dir", "--out", "--out_dir", "--out-dir", "--save_dir", "--save-dir", "--save-path",
           "--checkpoint_dir", "--checkpoint-dir", "--ckpt_dir", "--logdir", "--default_root_dir")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Script:
    """The facts of a script. Lines are 0 if there is no such call, and texts are "".

    `trainer` is the call that creates the trainer, `starts` the one that trains, `loop` the `for` or `while` of a loop
    of its own. `resume` is the option that names the checkpoint, `output` the one that names the output folder, and
    `folder` its value.
    `main`: a function without required arguments. `distributed`: it joins a process group.
    """

    file: Path
    loop_of: Loop
    imports: int
    trainer: int = 0
    starts: int = 0
    loader: int = 0
    saves: int = 0
    loop: int = 0
    resume: str = ""
    output: str = ""
    folder: str = ""
    main: bool = False
    torch: bool = False
    distributed: bool = False


def script_of(file: Path) -> Script:
    """The facts of a Python file. Raises InvalidSpec."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise InvalidSpec(f"cannot be read: {error.strerror}; name a Python script", where=str(file)) from None
    except (SyntaxError, ValueError) as error:
        where = f"{file}:{getattr(error, 'lineno', None) or 1}"
        raise InvalidSpec(f"is not a Python script: {error}", where=where) from None
    packages = set(_packages(tree))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls.sort(key=lambda node: node.lineno)
    owner, trainer = Loop.OWN, 0
    for loop, imported, names in _TRAINERS:
        if not packages.isdisjoint(imported) and (line := _first(calls, names)):
            owner, trainer = loop, line
            break
    if "spotladder" in packages:
        owner = Loop.LIBRARY
    options = {option: _keyword(call, "default") for call in calls if (option := _option(call))}
    output = next((name for name in _OUTPUT if name in options), "")
    return Script(
        file,
        owner,
        max((node.lineno for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)), default=1),
        trainer=trainer,
        starts=_first(calls, ("fit",) if owner is not Loop.HUGGING_FACE else ("train",)),
        loader=_first(calls, ("DataLoader",)),
        saves=_first(calls, _SAVES),
        loop=_loop(tree),
        resume=next((name for name in _RESUME if name in options), ""),
        output=output,
        folder=options.get(output) or _literal(calls) or "",
        main=any(_is_main(node) for node in tree.body),
        torch=not packages.isdisjoint({"torch", "lightning", "pytorch_lightning", "transformers", "trl", "accelerate"}),
        distributed=bool(_first(calls, ("init_process_group", "Accelerator"))),
    )


def _packages(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _first(calls: list[ast.Call], names: tuple[str, ...] | frozenset[str]) -> int:
    """The line of the first call of one of these names; 0 without one."""
    return next((call.lineno for call in calls if _name(call) in names), 0)


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _option(call: ast.Call) -> str:
    """The option that a call of argparse or click defines; "" for other calls."""
    if _name(call) not in ("add_argument", "option"):
        return ""
    return next((text for argument in call.args if (text := _text(argument)).startswith("--")), "")


def _keyword(call: ast.Call, name: str) -> str:
    return next((_text(keyword.value) for keyword in call.keywords if keyword.arg == name), "")


def _literal(calls: list[ast.Call]) -> str:
    """The folder that the arguments of a trainer name."""
    for call in calls:
        if _name(call).endswith(("TrainingArguments", "Config")) and (folder := _keyword(call, "output_dir")):
            return folder
        if _name(call).endswith("TrainingArguments") and call.args and (folder := _text(call.args[0])):
            return folder
        if _name(call) == "Trainer" and (folder := _keyword(call, "default_root_dir")):
            return folder
    return ""


def _loop(tree: ast.Module) -> int:
    """The line of the innermost loop around the step of an optimizer; 0 without one."""
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While):
            inside = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
            if _first(inside, _STEPS):
                found = max(found, node.lineno)
    return found


def _is_main(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef) or node.name != "main":
        return False
    required = len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults)
    return required == 0 and None not in node.args.kw_defaults
