"""A free port of a Ray Train worker, for the framework's own rendezvous."""

from __future__ import annotations

import socket


def free_address() -> str:
    """`host:port` of this worker, with a free port; an IPv6 host is in brackets."""
    from ray.util import get_node_ip_address

    host = get_node_ip_address()
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
