"""`ray start` with fewer processes: without those that a run on one machine does not use, and with the log monitor as
a thread.

1. The dashboard's process (started even with `--include-dashboard=false`) and the server for Ray Client together take
   a third of the head's memory and start time, and the latter needs a fixed port.
2. A worker node's dashboard agent is `idle_agent`. Only the head's agent receives requests.
3. The log monitor is a thread of this process, which has imported Ray and waits for the node's end.

Each process that imports Ray needs half a second of processor time for the import. Ray has no option for any of these.
If a version of Ray differs, its own process starts; the server for Ray Client then uses a free port.

Run as a program by `nodes.py`, with the arguments of `ray`.
"""

import shlex
import socket
import subprocess
import sys
import threading
from typing import Any

from spotladder.local import idle_agent

AGENT_COMMAND = "--dashboard_agent_command="
"""The raylet's argument with the command line of its agent."""


def main() -> None:
    """Ray's own command with these changes."""
    from ray._private import node, services
    from ray.scripts import scripts

    from spotladder.local.driver import keep_orphans

    keep_orphans()  # A process that outlives a Ray worker stays a descendant of its node.
    if "--head" in sys.argv:
        if hasattr(scripts, "get_ray_client_dependency_error"):
            scripts.get_ray_client_dependency_error = lambda: "not wanted here"
        else:
            with socket.socket() as probe:
                probe.bind(("", 0))
                sys.argv.append(f"--ray-client-server-port={probe.getsockname()[1]}")
        if hasattr(node.Node, "start_api_server"):
            node.Node.start_api_server = lambda *_, **__: None
    elif hasattr(services, "start_ray_process"):
        services.start_ray_process = with_idle_agent(services.start_ray_process)
    if hasattr(node.Node, "start_log_monitor"):
        node.Node.start_log_monitor = _inside(node.Node.start_log_monitor)
    sys.argv[0] = "ray"
    scripts.main()


def with_idle_agent(start: Any) -> Any:
    """`start`, which starts Ray's processes, with the idle agent in the raylet's command."""

    def start_process(command: list[str], *rest: Any, **options: Any) -> Any:
        return start([_idle(word) if word.startswith(AGENT_COMMAND) else word for word in command], *rest, **options)

    return start_process


def _idle(argument: str) -> str:
    given = dict(word.partition("=")[::2] for word in shlex.split(argument.removeprefix(AGENT_COMMAND)))
    session, node = given.get("--session-dir"), given.get("--node-id")
    if not session or not node:
        return argument
    return AGENT_COMMAND + subprocess.list2cmdline([sys.executable, "-I", "-S", idle_agent.__file__, session, node])


def _inside(start: Any) -> Any:
    """A replacement for a node's method that starts the log monitor: it starts a thread, or calls `start` if that is
    not possible."""

    def start_log_monitor(node: Any) -> None:
        try:
            from ray._private.log_monitor import LogMonitor, is_proc_alive

            place, client = (node.node_ip_address, node.get_logs_dir_path()), node.get_gcs_client()
            monitor = LogMonitor(*place, client, is_proc_alive, gcs_address=node.gcs_address)
        except (ImportError, AttributeError, TypeError):
            start(node)
        else:
            threading.Thread(target=monitor.run, name="log-monitor", daemon=True).start()

    return start_log_monitor


if __name__ == "__main__":
    main()
