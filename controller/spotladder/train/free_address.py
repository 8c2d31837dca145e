"""A free port of a Ray Train worker, for the framework's own rendezvous."""

from __future__ import annotations


def free_address() -> str:
    """`host:port` of this worker, with a free port; an IPv6 host is in brackets."""
    from ray.train._internal.utils import get_address_and_port

    host, port = get_address_and_port()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
