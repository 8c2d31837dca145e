"""Jobs of a cluster from Python: for notebooks, and for the operators of workflow engines.

`AsyncJobs` is for programs with an event loop, `Jobs` for all others; both do what the commands do, with the same
checks and errors (`SpotladderError`, whose `exit_code` is that of the command).
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.display import job_text
from spotladder.display.report import gather
from spotladder.display.report.data import as_data
from spotladder.errors import SpotladderError
from spotladder.jobs import deletion
from spotladder.jobs.attempt_clusters import AttemptClusters
from spotladder.jobs.connected_cluster import MANAGER, ConnectedCluster, for_user
from spotladder.jobs.printing import Printer, Printing
from spotladder.jobs.submission import checked, sent_to
from spotladder.jobs.waiting import OUTAGE_TIMEOUT, OutageTolerance
from spotladder.records.recorded_job import recorded_of_job

T = TypeVar("T")

POLL_INTERVAL = 5.0
"""Seconds between two reads of a job until it ends."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job has ended. `exit_code` is 0, or that of docs/conditions.md; `spent_usd` is the text of the status."""

    name: str
    phase: str
    reason: str
    message: str
    exit_code: int
    step: int
    spent_usd: str

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0


class AsyncJobs:
    """An async context manager: the jobs of one namespace. Without arguments, of the kubeconfig's context, or of the
    pod's namespace."""

    def __init__(
        self, namespace: str | None = None, *, context: str | None = None, kubeconfig: str | None = None
    ) -> None:
        self._namespace, self._context, self._kubeconfig = namespace, context, kubeconfig
        self._stack = AsyncExitStack()
        self._connected: ConnectedCluster | None = None

    async def __aenter__(self) -> Self:
        client = Client(connect(self._kubeconfig, self._context), manager=MANAGER)
        self._connected = ConnectedCluster(await self._stack.enter_async_context(client), self._namespace)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._connected = None
        await self._stack.aclose()

    @property
    def _cluster(self) -> ConnectedCluster:
        if self._connected is None:
            raise RuntimeError("AsyncJobs is not open: use it as `async with AsyncJobs() as jobs`")
        return self._connected

    async def submit(self, job: str | Path | Mapping[str, Any], *, update: bool = False) -> str:
        """Send a file, or a TieredJob as a mapping, as `spotladder submit` does. Returns the name of the job.

        Raises InvalidDocument, Refused (the job already exists, and not `update`) and EnvironmentFailure.
        """
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "job.yaml") if isinstance(job, Mapping) else Path(job)
            if isinstance(job, Mapping):
                file.write_text(json.dumps(job, default=str), encoding="utf-8")  # A time is a datetime.
            found = checked([file], self._namespace, update=update)
            names = [entry.name for entry in found.objects if entry.kind == "TieredJob"]
            if len(names) != 1:
                raise ValueError(f"{file}: expected one TieredJob, got {len(names)}")

            async def send() -> None:
                async for _ in sent_to(self._cluster, found, update=update):
                    pass

            await self._asked(send())
        return names[0]

    async def get(self, name: str) -> dict[str, Any]:
        """The TieredJob object. Raises Refused if it does not exist."""
        return job_text.cleaned(await self._asked(self._cluster.job(name)))

    async def wait(self, name: str, timeout: float | None = None) -> Outcome:
        """Wait until the job has ended; through outages of the API server of ten minutes. Raises TimeoutError after
        `timeout` seconds; the job continues."""

        async def ended() -> Outcome:
            tolerance = OutageTolerance(OUTAGE_TIMEOUT)
            while True:
                with tolerance:
                    job = await self._cluster.job(name)
                    if (job.get("status") or {}).get("phase") in job_text.ENDED:
                        return _outcome(job)
                await asyncio.sleep(POLL_INTERVAL)

        async with asyncio.timeout(timeout):
            return await self._asked(ended())

    async def logs(
        self, name: str, *, attempt: int | None = None, follow: bool = False, tail: int | None = None
    ) -> AsyncGenerator[str, None]:
        """The lines of the program, attempt by attempt, as `spotladder logs` prints them. The output is read on as its
        lines are taken. A followed stream that breaks is opened again; lines in between are missing."""
        lines: asyncio.Queue[str | None] = asyncio.Queue()
        to = Printer(lambda text: lines.put_nowait(text.removesuffix("\n")), lambda _note: None, lines.join)

        async def read() -> None:
            try:
                async with AttemptClusters(self._cluster, self._kubeconfig, {}) as clusters:
                    await Printing(self._cluster, clusters, name, tail, to, follow=follow, every_pod=False).attempts(
                        attempt
                    )
            finally:
                lines.put_nowait(None)

        reading = asyncio.create_task(self._asked(read()))
        try:
            while (line := await lines.get()) is not None:
                yield line
                lines.task_done()
            await reading
        finally:
            reading.cancel()

    async def report(self, name: str) -> dict[str, Any]:
        """The report of the job as in report.json. Needs access to the bucket of its checkpoints."""
        job = await self._asked(self._cluster.job(name))
        return await asyncio.to_thread(lambda: as_data(gather(recorded_of_job(job))))

    async def delete(self, name: str) -> None:
        """Delete the job: it commits and releases its nodes. Returns when all its objects are gone. A job that is
        submitted again under the same name continues from the newest commit. Raises Refused if it does not exist."""

        async def gone() -> None:
            job = await self._cluster.job(name)
            await deletion.requested(self._cluster, job)
            await deletion.until_gone(self._cluster, job)

        await self._asked(gone())

    async def _asked(self, work: Coroutine[Any, Any, T]) -> T:
        """The result, with API errors converted into messages for people."""
        try:
            return await work
        except SpotladderError as error:
            raise await for_user(error, self._cluster) from None


class Jobs:
    """A context manager: `AsyncJobs` for programs without an event loop, and for notebooks, which have one that is
    busy."""

    def __init__(
        self, namespace: str | None = None, *, context: str | None = None, kubeconfig: str | None = None
    ) -> None:
        self._jobs = AsyncJobs(namespace, context=context, kubeconfig=kubeconfig)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="spotladder-client", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._run(self._jobs.__aenter__())
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._run(_end_other_tasks())
            self._run(self._jobs.__aexit__(kind, error, trace))
        finally:
            self._close()

    def submit(self, job: str | Path | Mapping[str, Any], *, update: bool = False) -> str:
        """As `AsyncJobs.submit`."""
        return self._run(self._jobs.submit(job, update=update))

    def get(self, name: str) -> dict[str, Any]:
        """As `AsyncJobs.get`."""
        return self._run(self._jobs.get(name))

    def wait(self, name: str, timeout: float | None = None) -> Outcome:
        """As `AsyncJobs.wait`."""
        return self._run(self._jobs.wait(name, timeout))

    def logs(
        self, name: str, *, attempt: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Generator[str, None, None]:
        """As `AsyncJobs.logs`."""
        lines = self._jobs.logs(name, attempt=attempt, follow=follow, tail=tail)

        async def following() -> str | None:
            return await anext(lines, None)

        try:
            while (line := self._run(following())) is not None:
                yield line
        finally:
            if not self._loop.is_closed():  # The caller may have left before the end.
                asyncio.run_coroutine_threadsafe(lines.aclose(), self._loop)

    def report(self, name: str) -> dict[str, Any]:
        """As `AsyncJobs.report`."""
        return self._run(self._jobs.report(name))

    def delete(self, name: str) -> None:
        """As `AsyncJobs.delete`."""
        self._run(self._jobs.delete(name))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_other_tasks() -> None:
    """Cancel what an error in the caller's thread has left unfinished."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _outcome(job: Mapping[str, Any]) -> Outcome:
    status, completed = job["status"], job_text.condition(job, "Completed")
    return Outcome(
        name=job["metadata"]["name"],
        phase=status["phase"],
        reason=str(completed.get("reason") or ""),
        message=str(status.get("message") or ""),
        exit_code=job_text.exit_code(job),
        step=int((status.get("progress") or {}).get("step") or 0),
        spent_usd=str((status.get("cost") or {}).get("spent") or ""),
    )
