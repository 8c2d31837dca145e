"""Records which process of this machine works on a state, to release the lock of a killed one."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime, timedelta
from pathlib import Path

from spotladder.local.reaper import alive
from spotladder_infra.terraform.failures import Lock

CLOCKS_DIFFER = timedelta(minutes=1)
"""Maximum time by which a lock may seem older than the run that took it."""


def remember(path: Path, process: int) -> None:
    """Records that this process of this machine works on the state."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"host": platform.node(), "process": process, "started": datetime.now(UTC).isoformat()}
    path.write_text(json.dumps(record), encoding="utf-8")


def forget(path: Path) -> None:
    """Removes the record. Call it after the process has exited: Terraform has released its lock by then."""
    path.unlink(missing_ok=True)


def was_killed(path: Path, lock: Lock) -> bool:
    """Whether the lock belongs to the recorded run on this machine, and the process of this run is gone."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        host, process = str(record["host"]), int(record["process"])
        started = datetime.fromisoformat(record["started"])
        created = datetime.fromisoformat(" ".join(lock.created.split()[:2]).partition(".")[0]).replace(tzinfo=UTC)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if host != platform.node() or lock.who.rpartition("@")[2] != host or created < started - CLOCKS_DIFFER:
        return False
    return not alive(process)
