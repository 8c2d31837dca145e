"""What Ray's internals say about this process, read only from modules that the program has imported."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

TUNE_SESSION = "ray.train._internal.session"
TRAIN_CONTEXT = "ray.train.v2._internal.execution.context"


def in_tune_trial(modules: Mapping[str, Any] | None = None) -> bool:
    """Whether this process runs a trial of a Ray Tune sweep. Ray's public functions warn outside a trial."""
    session = (sys.modules if modules is None else modules).get(TUNE_SESSION)
    return session is not None and session.get_session() is not None


def train_context() -> Any:
    """The context of this worker of Ray Train V2, with its preemption information; None in other processes.

    `ray.train.get_preemption_info` is a barrier over all ranks.
    """
    module = sys.modules.get(TRAIN_CONTEXT)
    try:
        return module.get_train_context() if module else None
    except (AttributeError, RuntimeError):
        return None
