"""How the ranks find rank 0: through Ray if Ray launched them, otherwise through the bucket.

In the bucket the address is an object beside the attempt's files, numbered by the `start` entry that rank 0 has just
appended; in a standby attempt, which has appended none, by the next entry of the log. Ranks read the newest address and
retry until rank 0 accepts them: the address of an older start of the same attempt has no listener, or belongs to a rank
0 that already has all its ranks or is of another group.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import asdict
from typing import Any

from spotladder.checkpoints.store import ObjectMissing, Store
from spotladder.errors import SpotladderError, StoreUnavailable
from spotladder.train.agreement import Agreement
from spotladder.train.framing import Address
from spotladder.train.interruption import RankLost
from spotladder.train.ranks import ProcessRank
from spotladder.train.spoke import Spoke
from spotladder.train.store_retry import StoreRetry

_log = logging.getLogger("spotladder.train")

RENDEZVOUS_TIMEOUT = 600.0
"""Seconds that ranks wait for one another: importing a framework on a busy machine takes minutes."""

LARGEST_ADDRESS = 65_536
"""Maximum bytes of a published address."""

RETRY_INTERVAL = 0.5


def publish(store: Store, attempt: int, seq: int, address: Address) -> None:
    """On rank 0: publish the address, under the next free number if another start has published under this one."""
    data = json.dumps(asdict(address)).encode()
    while not store.put_if_absent(key := f"{_folder(attempt)}{seq:08d}.json", data) and store.get(key) != data:
        seq += 1


def seek(
    store: Store,
    attempt: int,
    world: ProcessRank,
    agreement: Agreement,
    *,
    retry: StoreRetry,
    timeout: float = RENDEZVOUS_TIMEOUT,
) -> Spoke:
    """On any other rank: its end of the channel, after rank 0 has accepted it.

    Time in which the store is unavailable does not count. Raises RankLost if rank 0 is not found in time,
    StoreRefused.
    """
    give_up = time.monotonic() + timeout
    failure: SpotladderError = RankLost(f"rank 0 of attempt {attempt} has not started")
    while True:
        try:
            newest = max((meta.key for meta in store.list(_folder(attempt))), default=None)
            if newest is not None:
                address = Address.from_json(json.loads(store.get(newest, LARGEST_ADDRESS)))
                return Spoke(address, world.rank, world.size, agreement, group=world.group)
        except StoreUnavailable as error:
            if not retry.waits_for(error, starting=True):
                raise
            time.sleep(retry.failed(str(error), "the program waits for it"))
            give_up = time.monotonic() + timeout
            continue
        except (ObjectMissing, RankLost) as error:
            failure = error
        retry.answered()
        if time.monotonic() >= give_up:
            raise RankLost(f"rank {world.rank} found no rank 0 within {timeout:.0f} s: {failure}")
        time.sleep(RETRY_INTERVAL)


def broadcast_by_ray(value: dict[str, Any] | None) -> dict[str, Any]:
    """Rank 0's `value` on every worker of a Ray Train worker group."""
    from ray.train.collective import broadcast_from_rank_zero

    received: dict[str, Any] = broadcast_from_rank_zero(value)
    return received


def _folder(attempt: int) -> str:
    return f"attempts/{attempt:04d}/channel/"
