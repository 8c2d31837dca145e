"""The files that `spotladder init` writes beside a script, and what it says about the script."""

from __future__ import annotations

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
  train: {{script: "{script}", workers: 1, gpus: 0, framework: {framework}}}
"""

_WORLD = """\
# What this machine pretends to have: spot nodes that are taken away with a notice of 10 s, and others that stay.
pools:
  spot: {{capacityType: spot, nodes: 1, notice: 10s, interruptions: {{{taken}}}}}
  on-demand: {{nodes: 1}}
"""

_TEST = '''\
"""{script} loses its node and goes on: run with pytest."""

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
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "will be reclaimed" in done.stdout, "the node was not lost: lower the times in world.yaml\""""

_CHANGES: Mapping[Loop, str] = MappingProxyType(
    {
        Loop.LIGHTNING: "callbacks=[train.lightning.callback()]",
        Loop.HUGGING_FACE: "callbacks=[train.huggingface.callback()]",
        Loop.KERAS: "callbacks=[train.keras.callback()]",
        Loop.RAY: "run_config=train.ray_run_config()",
    }
)


def keeps_own_checkpoints(script: Script) -> bool:
    """Whether the script, unchanged, saves checkpoints in a known folder and resumes from an option."""
    return script.loop_of is Loop.OWN and bool(script.saves and script.resume and script.folder)


def files_for(script: Script) -> dict[str, str]:
    """The name and text of each file."""
    own, name = keeps_own_checkpoints(script), name_of([script.file.name])
    words = [script.file.name, *([script.resume, "{checkpoint}"] if own else [])]
    framework = "ray" if script.loop_of is Loop.RAY else "torch" if script.torch else "python"
    job = _JOB.format(
        name=name,
        folder=f', programFolder: "{script.folder}"' if own else ", interval: 5m",
        script=" ".join(word if "{" in word else shlex.quote(word) for word in words),
        framework=framework,
    )
    taken = "at: [60s]" if own or script.loop_of is Loop.RAY else "atSteps: [20]"
    module = re.sub(r"\W", "_", script.file.stem)
    if script.main and module == script.file.stem and not own and script.loop_of is not Loop.RAY:
        imports = f"from pathlib import Path\n\nfrom {module} import main\n"
        imports += "from spotladder.train.testing import interrupt_at\n"
        body = _IN_PROCESS
    else:
        imports, body = "import subprocess\nfrom pathlib import Path\n", _AS_JOB
    test = _TEST.format(script=script.file.name, imports=imports, body=body)
    return {"job.yaml": job, "world.yaml": _WORLD.format(taken=taken), f"test_recovery_of_{module}.py": test}


def advice(script: Script) -> Iterator[str]:
    """What the script shows, and what to change in it, with line numbers."""
    at = script.file.name
    yield f"{at}: the training loop is that of {script.loop_of.value}"
    if script.loop_of is Loop.LIBRARY:
        return
    if keeps_own_checkpoints(script):
        yield f"{at}: nothing to change: checkpoints in {script.folder} are committed, {script.resume} resumes from one"
        yield f"{at}:{script.saves}: save at SIGTERM, too; otherwise the steps since the last checkpoint are repeated"
        return
    yield f"{at}:{script.imports}: add: from spotladder import train"
    if change := _CHANGES.get(script.loop_of):
        place = script.starts if script.loop_of is Loop.KERAS else script.trainer
        yield f"{at}:{place}: add {change}"
        if script.loop_of is Loop.HUGGING_FACE:
            yield f"{at}:{script.starts}: train(resume_from_checkpoint=train.huggingface.checkpoint())"
        return
    yield f"{at}:{script.loop or script.imports}: use job.resume, job.steps and job.commit: docs/training-script.md"
    if script.saves:
        yield f"{at}:{script.saves}: save into the folder of job.commit instead"
    if script.loader:
        yield f"{at}:{script.loader}: give the DataLoader a train.torch.Sampler, whose position State saves"
    if script.distributed:
        yield f"{at}: several processes: set workers or gpus in job.yaml; torchrun starts them"
