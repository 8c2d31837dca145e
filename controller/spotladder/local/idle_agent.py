"""The dashboard agent of a worker node: it serves nothing, and ends with its raylet.

The raylet wants an agent and the numbers of its ports before the node joins; -1 means that a service is off. Ray's own
agent without any module does the same, and takes a second of processor time to import Ray. Standard library only.

    python -I -S idle_agent.py SESSION_DIR NODE_ID
"""

import os
import sys
import time
from pathlib import Path

PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
POLL_INTERVAL = 0.5  # seconds between two looks whether the raylet is still there


def main(session: Path, node: str) -> None:
    """Write the ports as `persist_port` of Ray does, then wait for the end of the parent process."""
    raylet = os.getppid()
    for port in PORTS:
        partial = session / f".{port}_{node}"
        partial.write_text("-1")
        partial.replace(session / f"{port}_{node}")
    while os.getppid() == raylet:
        time.sleep(POLL_INTERVAL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
