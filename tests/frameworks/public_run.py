"""`python -m tests.frameworks.public_run NAME [KILLS]`: kills a public example ten times at random steps, and compares
its weights with those of an uninterrupted run.

An example with a line of `COMMANDS` runs in processes of its own, and the machine of each attempt is lost: only the
job's bucket outlives it. The others run in this process, and get two notices, too.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from spotladder.train.testing import interrupt_at
from tests.frameworks.scripts import program
from tests.train.builders import log_of, variables
from tests.train.program_site import Site
from tests.waiting import until

EXAMPLES, HOLDING = Path(__file__).parent / "public", Path(__file__).parent / "holding"
TOTAL = 36
"""Each example makes 36 steps, for example three epochs of 12 batches."""

EVERY = 3
"""A loop of the user's own saves after so many steps."""

_OWN = "-m spotladder.train.program out -- {python}"
COMMANDS = {
    "accelerate_nlp_example": f"{_OWN} {{script}} --resume_from_checkpoint {{checkpoint}}",
    "deepspeed_hello": f"{_OWN} -m torch.distributed.run --nproc-per-node 2 {{script}}",
    "flax_mnist": f"{_OWN} {{script}}",
    "ray_data_batch_inference": "{script}",
    "ray_lightgbm": "{script}",
    "ray_train_torch": "{script}",
    "ray_tune": "{script}",
    "ray_xgboost": "{script}",
    "torch_imagenet": f"{_OWN} -m spotladder.train.torchrun --nproc-per-node 2 {{script}} --resume {{checkpoint}}",
    "torchtitan_train": f"{_OWN} -m torch.distributed.run --nproc-per-node 2 {{script}}",
}
"""The arguments of Python. A program with checkpoints of its own runs under `spotladder.train.program`, as with
`programFolder`; one of Ray gets the environment of an attempt."""

COMMITS_NOTHING = {"ray_data_batch_inference"}
"""It has Ray Data's own checkpoints, in the job's folder of the bucket."""


def weights(variables: dict[str, Any]) -> list[bytes]:
    model = variables["model"]
    if hasattr(model, "get_weights"):
        return [array.tobytes() for array in model.get_weights()]
    return [tensor.detach().numpy().tobytes() for tensor in model.state_dict().values()]


def killed_in_this_process(name: str, steps: Sequence[int]) -> None:
    run = program((EXAMPLES / f"{name}.py").read_text(), weights)
    uninterrupted = interrupt_at(run, step=[])
    assert interrupt_at(run, step=steps, notice=False, interval=f"{EVERY}steps") == uninterrupted, steps
    noticed = sorted(random.Random(name).sample(range(1, TOTAL), 2))
    assert interrupt_at(run, step=noticed) == uninterrupted, noticed


def final(name: str, folder: Path, steps: Sequence[int]) -> bytes:
    """What the example writes at its end, into the file `final`, after kills at these steps."""
    words = {"{python}": sys.executable, "{script}": str(EXAMPLES / f"{name}.py")}
    command = [sys.executable, *(words.get(word, word) for word in COMMANDS[name].split())]
    log, begun, held = log_of(folder / "bucket"), 0, folder / "held"
    for attempt, step in enumerate([*steps, sys.maxsize], start=1):
        (folder / "last").write_text(str(step))
        machine, before = folder / f"machine-{attempt}", log.newest()
        machine.mkdir()
        own = variables(folder / "bucket", attempt=attempt, uid="u-1", interval="1s")
        with (folder / "output").open("ab") as output:
            streams: dict[str, Any] = {"stdout": output, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(command, cwd=machine, env={**os.environ, **own}, text=True, **streams)
        try:
            until(lambda: held.exists() or process.poll() is not None)  # noqa: B023 – called in this round
            if not held.exists():
                assert (process.returncode, step) == (0, sys.maxsize), (folder / "output").read_text()
                return (machine / "final").read_bytes()
            if step - begun >= EVERY and name not in COMMITS_NOTHING:
                until(lambda: log.newest() != before)  # noqa: B023
        finally:
            Site(machine).kill(process)
            process.wait()
        shutil.rmtree(machine)
        held.unlink()
        begun = step
    raise AssertionError("the last attempt was held")


@contextmanager
def ray_cluster(folder: Path) -> Iterator[None]:
    """A Ray cluster that the drivers of all attempts find. Its workers inherit the environment of this process."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False, "temp_dir": str(folder)}
    )
    try:
        with patch.dict(os.environ, RAY_ADDRESS=cluster.address, RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S="600"):
            yield
    finally:
        cluster.shutdown()


def main(name: str, kills: str = "10") -> None:
    killed = sorted(random.Random(name).sample(range(1, TOTAL), int(kills)))
    if name not in COMMANDS:
        return killed_in_this_process(name, killed)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HOLDING), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory(prefix="public-", ignore_cleanup_errors=True) as below, ExitStack() as cluster:
        folder = Path(below, "job")
        os.environ["HELD_IN"] = str(folder)
        if name.startswith("ray"):
            cluster.enter_context(ray_cluster(Path(below, "ray")))
        ends = []
        for steps in ([], killed):
            folder.mkdir()
            ends.append(final(name, folder, steps))
            shutil.rmtree(folder)
    assert ends[0] == ends[1], killed
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
