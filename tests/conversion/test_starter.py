"""`spotladder init`: what a script shows, and the files beside it."""

from __future__ import annotations

import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotladder.api.read import read_job_and_world
from spotladder.conversion.script import Loop, script_of
from spotladder.conversion.starter import advice, files_for
from tests.cli.terminal import call

Capture = pytest.CaptureFixture[str]

ADD = "train.py:{}: add: from spotladder import train"

LIGHTNING = """\
import lightning as L

def main():
    trainer = L.Trainer(max_epochs=4)
    trainer.fit(model, data)
"""

LIGHTNING_CLI = """\
from lightning.pytorch.cli import LightningCLI
LightningCLI(Model, Data)
"""

HUGGING_FACE = """\
from trl import SFTConfig, SFTTrainer

trainer = SFTTrainer(model=model, args=SFTConfig(output_dir="out"), callbacks=[early])
trainer.train()
"""

KERAS = """\
from tensorflow import keras
scaler.fit(data)
model = keras.Sequential()
model.fit(data, epochs=3)
"""

TUNE = """\
from ray import tune
tune.Tuner(objective).fit()
"""

DATA = """\
import ray
ray.data.read_parquet("in").map_batches(predict).write_parquet("out")
"""

TREES = """\
import xgboost
scaler.fit(data)
xgboost.train({}, data, 10).save_model("model.ubj")
"""

RAY = """\
from ray import train
from ray.train.torch import TorchTrainer
TorchTrainer(loop, run_config=train.RunConfig(name="a")).fit()
"""

OWN = """\
import torch
from torch.utils.data import DataLoader
torch.distributed.init_process_group("nccl")
data = DataLoader(words, shuffle=True)
for epoch in range(3):
    for batch in data:
        model(batch).backward()
    torch.save(model.state_dict(), "model.pt")
"""

RESUMES = """\
import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--save-dir", default="ckpts")
parser.add_argument("--resume", default="")
for step in range(9):
    loss.backward()
    torch.save(state, f"{args.save_dir}/step{step}.pt")
"""

ACCELERATE = """\
parser.add_argument("--output_dir", type=str, default=".")
parser.add_argument("--resume_from_checkpoint", type=str, default=None)
for batch in accelerator.prepare(data):
    accelerator.backward(model(batch))
    accelerator.save_state(args.output_dir)
"""

FUNCTIONS = """\
import optax
get_ipython().run_line_magic("matplotlib", "inline")
def train(batch):
    return optax.apply_updates(weights, batch)
for batch in data:
    train(batch)
"""

LIBRARY = """\
import json
from spotladder import train

def main():
    job, start, total = train.current(), 0, 0
    with job.resume() as found:
        if found:
            total, start = json.loads((found.path / "total.json").read_text()), found.step
    for step in job.steps(start, 30):
        total += step
        if job.should_commit(step):
            with job.commit(step) as folder:
                (folder / "total.json").write_text(json.dumps(total))
    return total
"""


@pytest.mark.parametrize(
    ("text", "loop", "said"),
    [
        (LIGHTNING, Loop.LIGHTNING, [ADD.format(1), "train.py:4: add callbacks=[train.lightning.callback()]"]),
        (
            HUGGING_FACE,
            Loop.HUGGING_FACE,
            [
                ADD.format(1),
                "train.py:3: add train.huggingface.callback() to callbacks",
                "train.py:4: call train(resume_from_checkpoint=train.huggingface.checkpoint())",
            ],
        ),
        (KERAS, Loop.KERAS, [ADD.format(1), "train.py:4: add callbacks=[train.keras.callback()]"]),
        (
            RAY,
            Loop.RAY,
            [
                ADD.format(2) + " as spot",
                "train.py:3: use spot.ray_run_config(…) for run_config: docs/ray.md#ray-train",
                "train.py: report checkpoints, and resume from ray.train.get_checkpoint(): docs/ray.md#ray-train",
            ],
        ),
        (
            OWN,
            Loop.OWN,
            [
                ADD.format(2),
                "train.py:6: use job.resume, job.steps and job.commit: docs/training-script.md",
                "train.py:8: save into the folder of job.commit instead",
                "train.py:4: give the DataLoader a train.torch.Sampler, whose position State saves",
                "train.py: several processes: set workers or gpus in job.yaml; torchrun starts them",
            ],
        ),
        (
            RESUMES,
            Loop.OWN,
            [
                "train.py: nothing to change: checkpoints in ckpts are committed, --resume resumes from one",
                "train.py:8: save at SIGTERM, too; otherwise the steps since the last checkpoint are repeated",
            ],
        ),
        (
            ACCELERATE,
            Loop.OWN,
            [
                (
                    "train.py: nothing to change: checkpoints in out are committed, "
                    "--resume_from_checkpoint resumes from one"
                ),
                "train.py:5: save at SIGTERM, too; otherwise the steps since the last checkpoint are repeated",
            ],
        ),
        (
            FUNCTIONS,
            Loop.OWN,
            [
                ADD.format(1) + " as spot",
                "train.py:5: use job.resume, job.steps and job.commit: docs/training-script.md",
            ],
        ),
        (LIBRARY, Loop.LIBRARY, []),
        (
            TUNE,
            Loop.TUNE,
            [ADD.format(1), "train.py:2: call train.tune_restore instead of Tuner, with the same arguments"],
        ),
        (DATA, Loop.DATA, ["train.py:2: set a CheckpointConfig before: docs/ray.md#ray-data"]),
        (
            TREES,
            Loop.TREES,
            ["train.py:3: train with Ray Train's trainer, whose reports are commits: docs/ray.md#ray-train"],
        ),
        (
            LIGHTNING_CLI,
            Loop.LIGHTNING,
            [ADD.format(1), 'train.py:2: add trainer_defaults={"callbacks": [train.lightning.callback()]}'],
        ),
    ],
)
def test_the_lines_to_change_are_named_and_the_files_are_valid(
    tmp_path: Path, capsys: Capture, text: str, loop: Loop, said: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(text)
    found = script_of(file)
    assert found.loop_of is loop
    magic = ["train.py:2: remove get_ipython: it exists only in a notebook"] if text == FUNCTIONS else []
    assert list(advice(found)) == [*magic, f"train.py: the training loop is that of {loop.value}", *said]
    assert call(capsys, "init", str(file)).code == 0
    job, world = read_job_and_world(tmp_path / "job.yaml", tmp_path / "world.yaml")
    assert job.spec.train is not None
    torch = any(word in text for word in ("torch", "trl", "lightning"))
    assert job.spec.train.framework == ("ray" if "ray" in loop.value.lower() else "torch" if torch else "python")
    assert job.spec.checkpoints.program_folder == {RESUMES: "ckpts", ACCELERATE: "out"}.get(text)
    options = {RESUMES: " --resume {checkpoint}", ACCELERATE: " --output_dir out --resume_from_checkpoint {checkpoint}"}
    assert job.spec.train.script == f"train.py{options.get(text, '')}"
    assert world.pools["spot"].interruptions is not None
    compile((tmp_path / "test_recovery_of_train.py").read_text(), "test", "exec")
    assert file.read_text() == text


@pytest.mark.parametrize("kind", ['action="store_true"', "type=int, default=0", "is_flag=True"])
def test_an_option_that_takes_no_path_resumes_from_no_checkpoint(tmp_path: Path, kind: str) -> None:
    (file := tmp_path / "train.py").write_text(RESUMES.replace('"--resume", default=""', f'"--resume", {kind}'))
    assert not script_of(file).resume


@pytest.mark.parametrize("name", ["01_train", "q\"uo\\te's", "7", "class", "日本"])
def test_the_files_of_a_script_with_any_name_are_valid(tmp_path: Path, capsys: Capture, name: str) -> None:
    for text in (LIBRARY, RESUMES.replace('"ckpts"', repr('runs\\one "a"'))):
        folder = tmp_path / str(len(text))
        folder.mkdir()
        (script := folder / f"{name}.py").write_text(text)
        assert call(capsys, "init", str(script)).code == 0
        job, _ = read_job_and_world(folder / "job.yaml", folder / "world.yaml")
        assert job.spec.train is not None
        assert shlex.split(job.spec.train.script)[0] == script.name
        assert job.spec.checkpoints.program_folder == (None if text == LIBRARY else 'runs\\one "a"')
        (test,) = folder.glob("test_*.py")
        compile(test.read_text(), str(test), "exec")


@pytest.fixture
def imports_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("program_of_init", None)


def test_the_written_test_passes_and_notices_a_wrong_script(imports_from: Path, capsys: Capture) -> None:
    script = imports_from / "program_of_init.py"
    script.write_text(LIBRARY)
    assert call(capsys, "init", str(script)).code == 0
    written = runpy.run_path(str(imports_from / "test_recovery_of_program_of_init.py"))
    written["test_a_lost_node_changes_nothing"](imports_from / "right")
    del sys.modules["program_of_init"]
    script.write_text(LIBRARY.replace("found.step\n", "found.step + 1\n"))
    written = runpy.run_path(str(imports_from / "test_recovery_of_program_of_init.py"))
    with pytest.raises(AssertionError):
        written["test_a_lost_node_changes_nothing"](imports_from / "wrong")


def test_existing_files_are_kept_and_other_files_are_no_scripts(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "train.py"
    file.write_text(LIBRARY)
    (tmp_path / "world.yaml").write_text("mine")
    answer = call(capsys, "init", str(file))
    assert (answer.code, (tmp_path / "world.yaml").read_text()) == (2, "mine")
    assert f"{tmp_path / 'world.yaml'}: init does not overwrite files: rename or remove" in answer.err
    assert not (tmp_path / "job.yaml").exists()
    for text in ("print('hello')", "for name in handlers:\n    handlers[name](data)\n"):
        file.write_text(text)
        assert list(advice(script_of(file))) == [
            "train.py: no training loop was found: name the script that trains, or see docs/trainers.md"
        ]
    file.write_text("")
    assert "train.py: is empty" in call(capsys, "init", str(file)).err
    file.write_text("def (")
    assert "train.py:1: is not a Python script: invalid syntax\n" in call(capsys, "init", str(file)).err
    assert "is a notebook" in call(capsys, "init", str(tmp_path / "train.ipynb")).err
    assert "cannot be read: No such file" in call(capsys, "init", str(tmp_path / "none.py")).err


@pytest.mark.parametrize(
    "text",
    [
        "import argparse\n\ndef main():\n    args = argparse.ArgumentParser().parse_args()\n",
        "import torch\n\ndef main():\n    torch.distributed.init_process_group()\n",
        "import click\n\n@click.command()\ndef main():\n    pass\n",
    ],
)
def test_a_main_that_needs_a_command_line_or_a_launcher_is_tested_as_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """The test finds the command beside its Python, also if the virtual environment is not activated."""
    file, command, test = tmp_path / "train.py", tmp_path / "bin" / "spotladder", tmp_path / "test_recovery_of_train.py"
    file.write_text(text)
    test.write_text(files_for(script_of(file))[test.name])
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho $1 $2 will be reclaimed\n")
    command.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(command.with_name("python")))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    runpy.run_path(str(test))["test_a_lost_node_changes_nothing"](tmp_path)


@pytest.mark.parametrize(
    "script", [b"\xef\xbb\xbfimport torch\n", b"# -*- coding: latin-1 -*-\nimport torch\nx = '\xe9'\n"]
)
def test_a_script_is_read_with_the_encoding_that_python_uses(script: bytes, tmp_path: Path) -> None:
    (file := tmp_path / "train.py").write_bytes(script)
    assert script_of(file).torch
