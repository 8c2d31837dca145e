"""`ray start` without what a run on one machine does not use: two processes of a head, and most of a worker's agent.

The dashboard's process (started even with `--include-dashboard=false`) and the server for Ray Client together take a
third of the head's memory and start time, and the latter wants a fixed port. Ray has no option for either. Where a
version of Ray differs, both simply start, the client's server on a free port. A worker's agent loads the dashboard's
modules unless Ray was installed without them; only the head's is asked for anything.

Run as a program by `nodes.py`, with the arguments of `ray`.
"""

import socket
import sys


def main() -> None:
    """Ray's own command, with what is said above."""
    from ray._private import node, utils
    from ray.scripts import scripts

    from spotladder.local.driver import keep_orphans

    keep_orphans()  # a process that outlives a Ray worker stays below its node
    if "--head" in sys.argv:
        if hasattr(scripts, "get_ray_client_dependency_error"):
            scripts.get_ray_client_dependency_error = lambda: "not wanted here"
        else:
            with socket.socket() as probe:
                probe.bind(("", 0))
                sys.argv.append(f"--ray-client-server-port={probe.getsockname()[1]}")
        if hasattr(node.Node, "start_api_server"):
            node.Node.start_api_server = lambda *_, **__: None
    elif hasattr(utils, "get_dashboard_dependency_error"):
        utils.get_dashboard_dependency_error = lambda: "not wanted here"
    sys.argv[0] = "ray"
    scripts.main()


if __name__ == "__main__":
    main()
