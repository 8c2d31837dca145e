"""The second attempt of a job, on another machine, does not compile again what the first one has compiled."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spotladder.core.contract import Variable, compile_caches
from tests.train.builders import variables

pytestmark = pytest.mark.frameworks

TORCH = """
import torch
from torch._dynamo.utils import counters

def compile_once():
    step = torch.compile(lambda x: (x.sin() + x.cos()).sum(dim=1).relu())
    return step(torch.arange(4096.0).reshape(64, 64)).sum().item()

def seen():
    found = counters["inductor"]
    return {"hits": found["fxgraph_cache_hit"], "misses": found["fxgraph_cache_miss"]}
"""

JAX = """
import jax
from jax import monitoring
events = []
monitoring.register_event_listener(lambda name, **_: events.append(name))

def compile_once():
    return float(jax.jit(lambda x: (jax.numpy.sin(x) + jax.numpy.cos(x)).sum())(jax.numpy.arange(64.0)))

def seen():
    count = lambda name: events.count("/jax/compilation_cache/" + name)
    return {"hits": count("cache_hits"), "misses": count("cache_misses")}
"""

PROGRAM = """
import json, os
from pathlib import Path
from spotladder import train

job = train.current()
with job.resume() as found:
    start = found.step if found else 0
for step in job.steps(start, start + 10):
    if step == start + 1:
        result = compile_once()
        for path in Path(os.environ["SPOTLADDER_COMPILED"]).rglob("*"):
            os.utime(path, (1.7e9, 1.7e9))  # Only files that nothing writes any more are stored.
    if job.should_commit(step):
        with job.commit(step) as folder:
            (folder / "step").write_text(str(step))
saving = job._member.log.compiled._saving
if saving.is_alive():
    saving.join()
print(json.dumps({"start": start, "result": result, **seen()}))
"""


def attempt(folder: Path, number: int, framework: str) -> dict[str, Any]:
    """Run an attempt on a new machine, on which every path is the same."""
    machine = folder / "machine"
    shutil.rmtree(machine, ignore_errors=True)
    machine.mkdir()
    caches = {Variable.COMPILED: str(machine / "compiled"), **compile_caches(str(machine / "compiled"))}
    done = subprocess.run(
        [sys.executable, "-c", framework + PROGRAM],
        env={
            **os.environ,
            **variables(folder / "bucket", attempt=number),
            **caches,
            "TMPDIR": str(machine),
            "JAX_PLATFORMS": "cpu",
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        },
        timeout=900,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


@pytest.mark.parametrize(("module", "framework"), [("torch", TORCH), ("jax", JAX)])
def test_the_second_attempt_has_only_hits(tmp_path: Path, module: str, framework: str) -> None:
    pytest.importorskip(module)
    first = attempt(tmp_path, 1, framework)
    assert (first["start"], first["hits"], first["misses"] > 0) == (0, 0, True)
    second = attempt(tmp_path, 2, framework)
    assert second == {"start": 10, "result": first["result"], "hits": first["misses"], "misses": 0}
