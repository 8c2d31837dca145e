"""Leader election: a Lease in the home cluster decides which controller may act, and a leader stops itself in time.

1. Clocks of different machines are never compared. A candidate takes the lease if it has not changed for `DURATION` by
   the candidate's own ticks.
2. A leader measures from the moment *before* it sent its last successful renewal. `MARGIN` before the end of
   `DURATION` it must stop writing: `fence` raises, and limits every write to the remaining time. A stopped process
   that continues finds its time over, because ticks continue.
3. All writes have the resourceVersion that was read, so only one of two candidates succeeds.
4. A leader that stops gracefully releases the lease, so that the next one need not wait.
"""

from __future__ import annotations

import asyncio

import structlog

from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import Conflict, NotFound
from spotladder.clusters.transport import Object
from spotladder.core.contract import ExitCode
from spotladder.core.model import Seconds
from spotladder.errors import SpotladderError
from spotladder.resources import APIResource
from spotladder.timestamps import utc_microseconds

LEASES = APIResource("coordination.k8s.io", "v1", "leases", "Lease")

DURATION: Seconds = 10.0
MARGIN: Seconds = 3.0
RENEW_INTERVAL: Seconds = 2.0


class NotLeading(SpotladderError):
    """This controller does not lead, or no longer leads."""

    exit_code = ExitCode.FENCED


class Election:
    """One candidate's view of the lease. `identity` is unique for each process; `holder` is the identity that has the
    lease.

    `problem` is why the last attempt was refused or got no response; "" if it succeeded.
    """

    def __init__(self, client: Client, *, namespace: str, name: str, identity: str, clock: Clock) -> None:
        self.identity = identity
        self.holder = ""
        self.problem = ""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._clock = clock
        self._lease: Object | None = None
        self._changed_at = float("-inf")
        self._leading_until = float("-inf")
        self._doubtful = False
        self._log = structlog.get_logger("spotladder").bind(lease=f"{namespace}/{name}")

    @property
    def leading(self) -> bool:
        """Whether this controller may act now."""
        return self._clock.ticks() < self._leading_until

    def fence(self) -> Seconds:
        """The number of seconds for which writes are still allowed. Raises NotLeading if they are not."""
        left = self._leading_until - self._clock.ticks()
        if left <= 0:
            raise NotLeading(
                f"the lease {self._namespace}/{self._name} was not renewed in time: another controller may lead now"
            )
        return left

    async def lead(self) -> None:
        """Return when this controller leads."""
        while not await self.attempt():
            await self._clock.sleep(RENEW_INTERVAL)

    async def keep(self) -> None:
        """Renew the lease while possible; returns when the lease is lost or expires."""
        while (left := self._leading_until - self._clock.ticks()) > 0:
            await self._clock.sleep(min(RENEW_INTERVAL, left))
            if self._clock.ticks() < self._leading_until:
                await self.attempt()

    async def attempt(self) -> bool:
        """Take or renew the lease, if that is possible now."""
        began = self._clock.ticks()
        try:
            async with asyncio.timeout(DURATION - MARGIN):
                held = self._lease if self.leading and not self._doubtful else await self._read()
                if not self._may_take(held):
                    self._leading_until = float("-inf")
                    self.problem = ""
                    return False
                written = await self._write(held)
        except Conflict:
            self._doubtful = True  # Another candidate has written it: read it first, and retry later.
            return self.leading
        except (SpotladderError, TimeoutError) as error:
            self._doubtful |= isinstance(error, NotFound)  # The lease or its namespace does not exist.
            self._write_failed(str(error) or f"no answer in {DURATION - MARGIN:g} s")
            return self.leading  # An acquired lease stays valid until it expires.
        self.problem = ""
        self._notice(written)
        self._doubtful = False
        self._leading_until = began + DURATION - MARGIN
        return self.leading

    def _write_failed(self, why: str) -> None:
        if self.problem != why:
            self._log.warning("cannot take the lease", error=why)
        self.problem = why

    async def release(self) -> None:
        """Release the lease."""
        if not self.leading:
            return
        self._leading_until = float("-inf")
        if self._lease is not None:
            body = {**self._lease, "spec": {**self._lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}}
            try:
                await self._client.replace(LEASES, body)
            except SpotladderError:
                return  # Then the next leader waits until the lease expires.

    async def _read(self) -> Object | None:
        try:
            held = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            return None
        self._notice(held)
        return held

    def _notice(self, lease: Object) -> None:
        """Record the lease, and when it last changed by this process's ticks."""
        known = self._lease["metadata"].get("resourceVersion") if self._lease else None
        if lease["metadata"].get("resourceVersion") != known:
            self._changed_at = self._clock.ticks()
        self._lease = lease
        self.holder = lease.get("spec", {}).get("holderIdentity") or ""

    def _may_take(self, held: Object | None) -> bool:
        if held is None or self.holder in ("", self.identity):
            return True
        lasting = max(DURATION, float(held["spec"].get("leaseDurationSeconds") or DURATION))
        return self._clock.ticks() - self._changed_at >= lasting

    async def _write(self, held: Object | None) -> Object:
        now = utc_microseconds(self._clock.now())
        spec = dict(held.get("spec") or {}) if held else {}
        if spec.get("holderIdentity") != self.identity:
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
            spec["acquireTime"] = now
        spec |= {"holderIdentity": self.identity, "leaseDurationSeconds": int(DURATION), "renewTime": now}
        metadata = dict(held["metadata"]) if held else {"name": self._name, "namespace": self._namespace}
        metadata.pop("managedFields", None)
        body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
        return await self._client.create(LEASES, body) if held is None else await self._client.replace(LEASES, body)
