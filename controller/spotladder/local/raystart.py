"""`ray start` with fewer processes: without those that a run on one machine does not use, and with the log monitor as
a thread.

1. The dashboard's process (started even with `--include-dashboard=false`) and the server for Ray Client together take
   a third of the head's memory and start time, and the latter needs a fixed port.
2. A worker node's dashboard agent is `idle_agent`. Only the head's agent receives requests.
3. The log monitor is a thread of this process, which has imported Ray and waits for the node's end.

Each process that imports Ray needs half a second of processor time for the import. Ray has no option for any of these;
the tests check for each supported version of Ray that it has the replaced functions.

Run as a program by `nodes.py`, with the arguments of `ray`.
"""

import shlex
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
        scripts.get_ray_client_dependency_error = lambda: "not wanted here"
        node.Node.start_api_server = lambda *_, **__: None
    else:
        services.start_ray_process = with_idle_agent(services.start_ray_process)
    node.Node.start_log_monitor = _start_log_monitor
    sys.argv[0] = "ray"
    scripts.main()


def with_idle_agent(start: Any) -> Any:
    """`start`, which starts Ray's processes, with the idle agent in the raylet's command."""

    def start_process(command: list[str], *rest: Any, **options: Any) -> Any:
        return start([_idle(word) if word.startswith(AGENT_COMMAND) else word for word in command], *rest, **options)

    return start_process


def _idle(argument: str) -> str:
    given = dict(word.partition("=")[::2] for word in shlex.split(argument.removeprefix(AGENT_COMMAND)))
    agent = [sys.executable, "-I", "-S", idle_agent.__file__, given["--session-dir"], given["--node-id"]]
    return AGENT_COMMAND + subprocess.list2cmdline(agent)


def _start_log_monitor(node: Any) -> None:
    """The node's method that starts the log monitor, with a thread instead of a process."""
    from ray._private.log_monitor import LogMonitor, is_proc_alive

    place, client = (node.node_ip_address, node.get_logs_dir_path()), node.get_gcs_client()
    monitor = LogMonitor(*place, client, is_proc_alive, gcs_address=node.gcs_address)
    threading.Thread(target=monitor.run, name="log-monitor", daemon=True).start()


if __name__ == "__main__":
    main()
