"""What a training script shows about itself. The script is parsed, and never imported or run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from spotladder.errors import InvalidSpec


class Loop(StrEnum):
    """What owns the training loop."""

    LIBRARY = "spotladder.train"
    RAY = "Ray Train"
    TUNE = "Ray Tune"
    DATA = "Ray Data"
    LIGHTNING = "Lightning"
    HUGGING_FACE = "Hugging Face's Trainer"
    KERAS = "Keras"
    TREES = "XGBoost or LightGBM"
    OWN = "the script itself"


_TRAINERS = (
    (Loop.RAY, ("ray",), "(Torch|Tensorflow|Jax|XGBoost|LightGBM|DataParallel)Trainer"),
    (Loop.TUNE, ("ray",), "Tuner"),
    (Loop.DATA, ("ray",), "map_batches"),
    (Loop.LIGHTNING, ("lightning", "pytorch_lightning"), "Trainer|LightningCLI"),
    (Loop.HUGGING_FACE, ("transformers", "trl"), r"\w*Trainer"),
    (Loop.KERAS, ("keras", "tensorflow"), "fit"),
    (Loop.TREES, ("xgboost", "lightgbm"), "train|fit"),
)
"""For each owner of a loop, its packages and the names of its calls: a script imports one of the packages and makes one
of the calls."""

_SAVES = "save|save_(state|checkpoint|model|weights|pretrained)"
_STEPS = "backward|value_and_grad|apply_gradients|apply_updates|train_on_batch"
_RESUME = ("--resume", "--resume_from", "--resume-from", "--resume_from_checkpoint", "--resume-from-checkpoint",
           "--checkpoint", "--ckpt", "--ckpt_path", "--ckpt-path", "--load", "--restore")  # fmt: skip
_OUTPUT = ("--output_dir", "--output-dir", "--out", "--out_dir", "--out-dir", "--save_dir", "--save-dir", "--save-path",
           "--checkpoint_dir", "--checkpoint-dir", "--ckpt_dir", "--logdir", "--default_root_dir")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Script:
    """The facts of a script. Lines are 0 if there is no such call, and texts are "".

    `trainer` is the call that creates the trainer, by the name `creates` and with the keywords `given`; `starts` is the
    call that trains, `loop` the `for` or `while` of a loop of its own, `reports` the report to Ray Train, and `magic`
    needs a notebook. `resume` is the option that names the checkpoint, `output` the one that names the output folder,
    and `folder` its value. `main`: it has a function that a test can call. `distributed`: it joins a process group.
    `renamed`: it has a name `train` of its own.
    """

    file: Path
    loop_of: Loop
    imports: int
    trainer: int = 0
    creates: str = ""
    given: frozenset[str | None] = frozenset()
    reports: int = 0
    magic: int = 0
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
    renamed: bool = False


def script_of(file: Path) -> Script:
    """The facts of a Python file. Raises InvalidSpec."""
    if file.suffix == ".ipynb":
        raise InvalidSpec("is a notebook: export it with jupyter nbconvert --to script", where=str(file))
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except OSError as error:
        raise InvalidSpec(f"cannot be read: {error.strerror}; name a Python script", where=str(file)) from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f"{file}:{getattr(error, 'lineno', None) or 1}"
        why = str(getattr(error, "msg", error)) or "it is nested too deeply"
        raise InvalidSpec(f"is not a Python script: {why}", where=where) from None
    if not tree.body:
        raise InvalidSpec("is empty: name the script that trains", where=str(file))
    packages = set(_packages(tree))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls.sort(key=lambda node: node.lineno)
    owner, trainer = Loop.OWN, None
    for loop, imported, names in _TRAINERS:
        if not packages.isdisjoint(imported) and (found := _calls(calls, names)):
            # A script may also fit a scaler: the model is fitted in epochs, or last.
            epochs = (call for call in found if any(keyword.arg == "epochs" for keyword in call.keywords))
            owner, trainer = loop, next(epochs, found[-1] if names.endswith("fit") else found[0])
            break
    if "spotladder" in packages:
        owner = Loop.LIBRARY
    options = {option: _keyword(call, "default") for call in calls if (option := _option(call)) and _takes_text(call)}
    distributed = bool(_first(calls, "init_process_group|Accelerator"))
    output = next((name for name in _OUTPUT if name in options), "")
    return Script(
        file,
        owner,
        max((node.lineno for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)), default=1),
        trainer=trainer.lineno if trainer else 0,
        creates=_name(trainer) if trainer else "",
        given=frozenset(keyword.arg for keyword in trainer.keywords) if trainer else frozenset(),
        reports=_first(calls, r"report|RayTrainReportCallback"),
        magic=_first(calls, "get_ipython"),
        starts=_first(calls, "train"),
        loader=_first(calls, "DataLoader"),
        saves=_first(calls, _SAVES),
        loop=_loop(tree),
        resume=next((name for name in _RESUME if name in options), ""),
        output=output,
        folder=options.get(output) or _literal(calls) or "",
        main=any(_is_main(node) for node in tree.body) and not (distributed or _first(calls, r"parse_\w*args\w*")),
        torch=not packages.isdisjoint({"torch", "lightning", "pytorch_lightning", "transformers", "trl", "accelerate"}),
        distributed=distributed,
        renamed="train" in _names(tree),
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


def _calls(calls: list[ast.Call], names: str) -> list[ast.Call]:
    """The calls whose names match."""
    return [call for call in calls if re.fullmatch(names, _name(call))]


def _first(calls: list[ast.Call], names: str) -> int:
    """The line of the first call whose name matches; 0 without one."""
    return next((call.lineno for call in _calls(calls, names)), 0)


def _names(tree: ast.Module) -> Iterator[str]:
    """The names that a script defines, except those that it imports from spotladder."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", "") != "spotladder":
            yield from (alias.asname or alias.name for alias in node.names)


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _option(call: ast.Call) -> str:
    """The option that a call of argparse or click defines; "" for other calls."""
    if _name(call) not in ("add_argument", "option"):
        return ""
    return next((text for argument in call.args if (text := _text(argument)).startswith("--")), "")


def _takes_text(call: ast.Call) -> bool:
    """Whether the option that this call defines takes a text such as a path. Many a --resume is a flag or a number."""
    return not any(
        keyword.arg in ("action", "is_flag") or getattr(keyword.value, "id", "") in ("int", "float")
        for keyword in call.keywords
    )


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


def _inside(node: ast.AST) -> list[ast.Call]:
    return [call for call in ast.walk(node) if isinstance(call, ast.Call)]


def _loop(tree: ast.Module) -> int:
    """The line of the innermost loop around the step of an optimizer, or else around a call of a function with one; 0
    without such a loop."""
    functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
                 if _first(_inside(node), _STEPS)]  # fmt: skip
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    for steps in (_STEPS, *(["|".join(functions)] if functions else [])):
        if found := [node.lineno for node in loops if _first(_inside(node), steps)]:
            return max(found)
    return 0


def _is_main(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef) or node.name != "main" or node.decorator_list:
        return False
    required = len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults)
    return required == 0 and None not in node.args.kw_defaults
