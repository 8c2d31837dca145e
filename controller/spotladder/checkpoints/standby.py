"""How a standby attempt reports to the controller that its program is ready to take over: an object beside its files.

The commit log itself has no entry of an attempt that has not started to write.
"""

from __future__ import annotations

from spotladder.checkpoints.store import Store


def report_held(store: Store, attempt: int) -> None:
    """Record that the program of this attempt waits until it may take over."""
    store.put_if_absent(_key(attempt), b"{}\n")


def is_held(store: Store, attempt: int) -> bool:
    """Whether the program of this attempt waits, or has waited, until it may take over."""
    return store.head(_key(attempt)) is not None


def _key(attempt: int) -> str:
    return f"attempts/{attempt:04d}/standby.json"
