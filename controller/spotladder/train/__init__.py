"""The in-job library: what a training program uses to survive the loss of its machines.

    from spotladder import train

    job = train.current()                      # outside a job: a local default, so that the script runs anywhere
    model, start = build(), 0
    with job.resume() as found:                # the newest commit that verifies; None at the first start
        if found:
            model.load(found.path)
            start = found.step
    for step in job.steps(start, total):       # start + 1 … total: `step` counts the steps done when its round ends
        loss = …
        if job.should_commit(step):            # the same answer on every rank
            with job.commit(step, {"loss": loss}) as folder:
                model.save(folder)             # every rank writes into its own folder; uploaded in the background

Importing this package loads neither a framework nor Ray.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spotladder.train.found import Found
from spotladder.train.interruption import Interrupted
from spotladder.train.session import Job, current

if TYPE_CHECKING:
    from spotladder.train.raytrain import ray_run_config, ray_scaling_config
    from spotladder.train.tune import tune_restore

__all__ = ["Found", "Interrupted", "Job", "current", "ray_run_config", "ray_scaling_config", "tune_restore"]

_HEAVY = {"ray_run_config": "raytrain", "ray_scaling_config": "raytrain", "tune_restore": "tune"}
_MODULES = frozenset({"huggingface", "jax", "keras", "lightning", "tensorflow", "testing", "torch", "tracking"})


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _HEAVY:
        return getattr(import_module(f"{__name__}.{_HEAVY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
