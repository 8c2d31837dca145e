"""A program that hangs, as its heartbeat in the store reports it, on a real API server."""

from __future__ import annotations

from spotladder.checkpoints import heartbeat
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.core.codec import load_state
from spotladder.core.contract import Variable
from tests.kube.apiserver import ApiServer
from tests.kube.test_standby import log_of, variables
from tests.kube.world import eventually, world


async def test_a_hang_ends_the_attempt_with_a_failure_and_the_next_one_gets_the_count(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(hangTimeout="90s")
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        start = log_of(kube).start(1, "spot-a").start
        heartbeat.write(log_of(kube).store, 1, StoredHeartbeat(start.seq, 12, 100))
        assert variables(await kube.rayjob(1))[Variable.HANG_TIMEOUT] == "1m30s"
        await kube.pass_time(60)
        assert await kube.has_phase("Running")

        heartbeat.write(log_of(kube).store, 1, StoredHeartbeat(start.seq, 12, 100, "no step for 70 s"))

        async def ended() -> bool:
            await kube.pass_time(20)
            return bool((await kube.status()).get("attempts"))

        await eventually(ended)
        status = await kube.status()
        first = status["attempts"][0]
        assert (first["reason"], first["failures"], status["failures"]) == ("Stalled", 1, 1)
        known = load_state(status["state"])
        assert (known.hangs, known.total) == (1, 100)
        await eventually(lambda: kube.rayjob(2))
        assert variables(await kube.rayjob(2))[Variable.HANGS] == "1"
