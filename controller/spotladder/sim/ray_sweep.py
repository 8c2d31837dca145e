"""Spreads simulated runs over a Ray cluster, for comparisons that are too large for one machine.

The nodes of the cluster need the same version of spotladder with the extra `sim`.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from spotladder.errors import EnvironmentFailure, InvalidSpec, SpotladderError, described, first_line
from spotladder.sim.child_processes import batches

Shared = TypeVar("Shared")
Run = TypeVar("Run")
Result = TypeVar("Result")

_HOST_AND_PORT = re.compile(r"(?:ray://)?([^/]+):(\d+)")

CONNECT_TIMEOUT = 5.0
"""Seconds in which the address must accept a connection. `ray.init` itself retries for more than five minutes."""


def spread(
    work: Callable[[Shared, Run], Result], shared: Shared, runs: Sequence[Run], address: str
) -> Iterator[Result]:
    """The results of `work` for each run, in their order. `shared` is sent once to each node. `address` is that of the
    cluster as for `ray.init`, or `local` for a new one on this machine. Raises InvalidSpec for an address that is not
    valid, EnvironmentFailure if the cluster cannot be used, and the errors of `work`."""
    _check_address(address)
    try:
        import ray
    except ImportError:
        raise EnvironmentFailure("--ray needs Ray: pip install 'spotladder[local]'") from None
    _check_reachable(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", include_dashboard=False)
    except (OSError, RuntimeError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise _cannot_connect(address, first) from None
    try:
        processors = int(ray.cluster_resources().get("CPU", 1))
        batch: Any = ray.remote(num_cpus=1)(_batch)
        reference = ray.put(shared)
        tasks = [batch.remote(work, reference, one) for one in batches(runs, max(1, processors))]
        for task in tasks:
            yield from ray.get(task)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, SpotladderError):
            raise error.cause from None
        raise _failed(address, described(error.cause)) from None
    except ray.exceptions.RayError as error:
        raise _failed(address, first_line(error)) from None
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Raises InvalidSpec for an address of a form that Ray does not know."""
    if address not in ("auto", "local") and not _HOST_AND_PORT.fullmatch(address):
        expected = "expected auto, local, HOST:PORT or ray://HOST:PORT"
        raise InvalidSpec(f"{expected}, got {address!r}: correct the address", path="--ray")


def _check_reachable(address: str) -> None:
    """Raises EnvironmentFailure unless `address` accepts connections, or names no host and port. Like Ray, `auto` uses
    RAY_ADDRESS."""
    parts = _HOST_AND_PORT.fullmatch(os.environ.get("RAY_ADDRESS", "") if address == "auto" else address)
    if parts is None:
        return
    try:
        socket.create_connection((parts[1].strip("[]"), int(parts[2])), timeout=CONNECT_TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise _cannot_connect(address, str(error)) from None


def _cannot_connect(address: str, why: str) -> EnvironmentFailure:
    return EnvironmentFailure(f"--ray {address}: cannot connect: {why}: check that this Ray cluster runs")


def _failed(address: str, why: str) -> EnvironmentFailure:
    remedy = "check that its nodes have the same version of spotladder with the extra sim"
    return EnvironmentFailure(f"--ray {address}: a run failed on the cluster: {why}: {remedy}")


def _batch(work: Callable[[Any, Any], Any], shared: Any, runs: Sequence[Any]) -> list[Any]:
    return [work(shared, run) for run in runs]
