"""One worker of an example, without Ray.

`main` connects the framework's processes itself, then runs the example's training loop. With `"lost_at"` in the
configuration, rank 0 is killed when it starts the step after that one, as by the loss of its machine.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = {"tensorflow": "digits-tensorflow", "torch": "digits-pytorch", "jax": "digits-jax", "elastic": "elastic"}


@dataclass(frozen=True)
class FrameworkRank:
    """One of `size` processes. `config` is the configuration of the example's loop; `output` collects its output."""

    framework: str
    number: int
    size: int
    port: int
    config: dict[str, Any]
    variables: dict[str, str]
    output: Path


def connect(framework: str, rank: int, size: int, port: int) -> None:
    if framework == "tensorflow":
        workers = [f"127.0.0.1:{port + index}" for index in range(size)]
        cluster = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        os.environ["TF_CONFIG"] = json.dumps(cluster)
    elif framework in ("torch", "elastic"):
        from torch.distributed import init_process_group

        init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    else:
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.distributed.initialize(f"127.0.0.1:{port}", size, rank)


def lose_at(step: int) -> None:
    from spotladder import train

    job = train.current()
    all_steps = job.steps

    def steps(start: int, total: int) -> Iterator[int]:
        for number in all_steps(start, total):
            if number > step:
                job.flush()  # so that the same commits exist in every run
                os.kill(os.getpid(), signal.SIGKILL)
            yield number

    job.steps = steps  # type: ignore[method-assign]


def main(rank: FrameworkRank) -> None:
    """Run this rank. Call it in a new process, because it changes the environment."""
    os.environ |= {**rank.variables, "SPOTLADDER_RANK": str(rank.number)}
    connect(rank.framework, rank.number, rank.size, rank.port)
    spec = importlib.util.spec_from_file_location("example", EXAMPLES / FOLDERS[rank.framework] / "train.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    if rank.number == 0 and "lost_at" in rank.config:
        lose_at(rank.config["lost_at"])
    with rank.output.open("a") as output, contextlib.redirect_stdout(output):
        example.loop(rank.config)
