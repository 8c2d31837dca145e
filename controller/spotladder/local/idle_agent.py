"""A dashboard agent for a worker node that serves nothing and ends with its raylet.

The raylet requires an agent, and its port numbers, before the node joins; -1 means that a service is off. Ray's own
agent without modules does the same but needs a second of processor time to import Ray. Standard library only.

    python -I -S idle_agent.py SESSION_DIR NODE_ID
"""

import os
import sys
import time
from pathlib import Path

PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
POLL_INTERVAL = 0.5  # seconds between two checks whether the raylet still runs


def main(session: Path, node: str) -> None:
    """Write the ports as Ray's `persist_port` does, then wait for the end of the parent process."""
    raylet = os.getppid()
    for port in PORTS:
        partial = session / f".{port}_{node}"
        partial.write_text("-1")
        partial.replace(session / f"{port}_{node}")
    while os.getppid() == raylet:
        time.sleep(POLL_INTERVAL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
