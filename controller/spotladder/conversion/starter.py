"""The files that `spotladder init` writes beside a script, and what it says about the script."""

from __future__ import annotations

import json
import keyword
import re
import shlex
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from spotladder.api.command_job import name_of
from spotladder.conversion.script import Loop, Script

_JOB = """\
# On this machine, with the losses of world.yaml: spotladder run job.yaml --world world.yaml
# On a cluster, with its bucket and its CapacityTiers: spotladder submit job.yaml --working-dir . -n NAMESPACE
apiVersion: spotladder.io/v1alpha1
kind: TieredJob
metadata: {{name: {name}}}
spec:
  tiers:                                   # in order of use
  - {{name: spot, capacityTier: spot, maxFailures: 2, provisionTimeout: 10m}}
  - {{name: on-demand, capacityTier: on-demand, maxFailures: -1}}
  checkpoints: {{uri: "s3://my-bucket/checkpoints"{folder}}}   # on this machine: its state folder
  train: {{script: {script}, workers: 1, gpus: 0, framework: {framework}}}
"""

_WORLD = """\
# What this machine pretends to have: spot nodes that are taken away with a notice of 10 s, and others that stay.
pools:
  spot: {{capacityType: spot, nodes: 1, notice: 10s, interruptions: {{{taken}}}}}
  on-demand: {{nodes: 1}}
"""

_TEST = '''\
"""{script} loses its node and continues: run with pytest."""

{imports}

def test_a_lost_node_changes_nothing(tmp_path: Path) -> None:
{body}
'''

_IN_PROCESS = """\
    expected = interrupt_at(main, step=[])  # what main returns: let it be the final loss
    assert interrupt_at(main, step=[3, 7], folder=tmp_path) == expected  # with a notice
    assert interrupt_at(main, step=[3, 7], notice=False) == expected  # without"""

_AS_JOB = """\
    command = ["spotladder", "run", "job.yaml", "--world", "world.yaml", "--fresh", "--state-dir", str(tmp_path)]
    found = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    done = subprocess.run(command, cwd=Path(__file__).parent, env=found, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "will be reclaimed" in done.stdout, "the node was not lost: lower the times in world.yaml\""""

_CHANGES: Mapping[Loop, tuple[str, str]] = MappingProxyType(
    {
        Loop.LIGHTNING: ("callbacks", "train.lightning.callback()"),
        Loop.HUGGING_FACE: ("callbacks", "train.huggingface.callback()"),
        Loop.KERAS: ("callbacks", "train.keras.callback()"),
        Loop.RAY: ("run_config", "train.ray_run_config()"),
    }
)
"""The argument that a trainer needs, and its value or one of its elements."""

_WITHOUT_IMPORT: Mapping[Loop, str] = MappingProxyType(
    {
        Loop.DATA: "set a CheckpointConfig before: docs/ray.md#ray-data",
        Loop.TREES: "train with Ray Train's trainer, whose reports are commits: docs/ray.md#ray-train",
    }
)

_RAY = frozenset({Loop.RAY, Loop.TUNE, Loop.DATA})


def own_folder(script: Script) -> str:
    """The folder of checkpoints, if the script, unchanged, saves them there and resumes from an option; else ""."""
    if script.loop_of is not Loop.OWN or not (script.saves and script.resume):
        return ""
    named = "" if script.folder in ("", ".", "./") else script.folder
    return named or ("out" if script.output else "")


def files_for(script: Script) -> dict[str, str]:
    """The name and text of each file."""
    own, name, on_ray = own_folder(script), name_of([script.file.name], script.file.parent), script.loop_of in _RAY
    words = [script.file.name, *([script.resume, "{checkpoint}"] if own else [])]
    if own and own != script.folder:
        words[1:1] = [script.output, own]
    framework = "ray" if on_ray else "torch" if script.torch else "python"
    job = _JOB.format(
        name=name,
        folder=f", programFolder: {_in_yaml(own)}" if own else ", interval: 5m",
        script=_in_yaml(" ".join(word if "{" in word else shlex.quote(word) for word in words)),
        framework=framework,
    )
    taken = "at: [60s]" if own or on_ray else "atSteps: [20]"
    module = re.sub(r"\W", "_", script.file.stem)
    importable = script.file.stem.isidentifier() and not keyword.iskeyword(script.file.stem)
    if script.main and importable and not own and not on_ray:
        imports = f"from pathlib import Path\n\nfrom {module} import main\n"
        imports += "from spotladder.train.testing import interrupt_at\n"
        body = _IN_PROCESS
    else:
        imports, body = "import os\nimport subprocess\nimport sys\nfrom pathlib import Path\n", _AS_JOB
    test = _TEST.format(script=script.file.name, imports=imports, body=body)
    return {"job.yaml": job, "world.yaml": _WORLD.format(taken=taken), f"test_recovery_of_{module}.py": test}


def _in_yaml(text: str) -> str:
    """The text in quotes, as in JSON."""
    return json.dumps(text, ensure_ascii=False)


def advice(script: Script) -> Iterator[str]:
    """What the script shows, and what to change in it, with line numbers."""
    if script.magic:
        yield f"{script.file.name}:{script.magic}: remove get_ipython: it exists only in a notebook"
    for line, sentence in _changes(script):
        text = re.sub(r"(?<!\.)\btrain(?=\.)", "spot", sentence) if script.renamed else sentence
        yield f"{script.file.name}:{line}: {text}" if line else f"{script.file.name}: {text}"


def _changes(script: Script) -> Iterator[tuple[int, str]]:
    """Each sentence with its line; 0 for the whole script."""
    loop, folder = script.loop_of, own_folder(script)
    if loop is Loop.OWN and not (script.loop or folder):
        yield 0, "no training loop was found: name the script that trains, or see docs/trainers.md"
        return
    yield 0, f"the training loop is that of {loop.value}"
    if folder:
        yield 0, f"nothing to change: checkpoints in {folder} are committed, {script.resume} resumes from one"
        yield script.saves, "save at SIGTERM, too; otherwise the steps since the last checkpoint are repeated"
    elif sentence := _WITHOUT_IMPORT.get(loop):
        yield script.trainer, sentence
    elif loop is not Loop.LIBRARY:
        yield script.imports, f"add: from spotladder import train{' as spot' if script.renamed else ''}"
        yield from _own_loop(script) if loop is Loop.OWN else _trainer(script)


def _trainer(script: Script) -> Iterator[tuple[int, str]]:
    if script.loop_of is Loop.TUNE:
        yield script.trainer, "call train.tune_restore instead of Tuner, with the same arguments"
        return
    yield script.trainer, _argument(script, *_CHANGES[script.loop_of])
    if script.loop_of is Loop.HUGGING_FACE:
        yield script.starts, "call train(resume_from_checkpoint=train.huggingface.checkpoint())"
    if script.loop_of is Loop.RAY and not script.reports:
        yield 0, "report checkpoints, and resume from ray.train.get_checkpoint(): docs/ray.md#ray-train"


def _own_loop(script: Script) -> Iterator[tuple[int, str]]:
    yield script.loop, "use job.resume, job.steps and job.commit: docs/training-script.md"
    if script.saves:
        yield script.saves, "save into the folder of job.commit instead"
    if script.loader:
        yield script.loader, "give the DataLoader a train.torch.Sampler, whose position State saves"
    if script.distributed:
        yield 0, "several processes: set workers or gpus in job.yaml; torchrun starts them"


def _argument(script: Script, name: str, value: str) -> str:
    if script.creates == "LightningCLI":
        return f'add trainer_defaults={{"callbacks": [{value}]}}'
    if name not in script.given:
        return f"add {name}={value}" if name == "run_config" else f"add {name}=[{value}]"
    return f"use {value[:-1]}…) for {name}: docs/ray.md#ray-train" if name == "run_config" else f"add {value} to {name}"
