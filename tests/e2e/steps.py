"""Receives the steps that the test programs report as datagrams."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class ReportedStep:
    """One step of a job (`namespace/name`). `process` differs after every restart. `at` is this machine's clock."""

    at: float
    job: str
    attempt: int
    process: str
    step: int


class StepCollector:
    """Collects steps. Programs get its `address`."""

    def __init__(self, host: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self.address = f"{host}:{self._socket.getsockname()[1]}"
        self._seen: list[ReportedStep] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def of(self, job: str) -> list[ReportedStep]:
        """A job's steps in the order of arrival."""
        return [step for step in list(self._seen) if step.job == job]

    def close(self) -> None:
        """Stop listening."""
        self._over.set()
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        self._socket.settimeout(0.2)
        while not self._over.is_set():
            try:
                text = self._socket.recv(1000).decode()
            except TimeoutError:
                continue
            job, attempt, process, step = text.split()
            self._seen.append(ReportedStep(time.time(), job, int(attempt), process, int(step)))


@contextmanager
def steps(host: str) -> Iterator[StepCollector]:
    """A listener inside the block."""
    made = StepCollector(host)
    try:
        yield made
    finally:
        made.close()
