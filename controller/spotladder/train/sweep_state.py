"""The committed state of a Ray Tune sweep: the content of a commit and how the next start restores it."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spotladder.checkpoints.store import Store
from spotladder.errors import InvalidSpec
from spotladder.train.store_retry import StoreRetry

if TYPE_CHECKING:
    from spotladder.checkpoints.log import CommitLog

_log = logging.getLogger("spotladder.train")

PLACE = "sweep.json"
"""The file in a commit that names the sweep's folder in the store."""

STATE_FILES = ("experiment_state-", "searcher-state-", "search_gen_state-", "callback-states-", ".")
"""Name prefixes of the files in which Ray stores the state of a sweep; all other files belong to its trials."""

FILES_AT_ONCE = 8


@contextmanager
def committed_state(log: CommitLog, retry: StoreRetry) -> Iterator[Path | None]:
    """The newest committed state of the sweep, verified, on this machine; None if nothing is committed."""
    with tempfile.TemporaryDirectory(prefix="spotladder-resume-") as folder:
        resumed = retry.until_answered(lambda: log.resume(Path(folder)))
        if resumed is not None and not (resumed.path / PLACE).is_file():
            raise InvalidSpec(
                f"{log.uri}: the newest commit is not of a sweep: give the sweep a job name that no training uses",
                where="tune_restore",
            )
        yield resumed.path if resumed else None


def take_over(store: Store, old: str, new: str, state: Path) -> None:
    """Fill the folder `new`: with the files of the trials from `old` and the sweep's state from the commit."""
    committed = {file.name for file in state.iterdir()}
    names = [meta.key.removeprefix(f"{old}/") for meta in store.list(f"{old}/")]
    wanted = [name for name in names if "/" in name or not name.startswith(STATE_FILES)]

    def copy(name: str) -> None:
        with tempfile.TemporaryDirectory(prefix="spotladder-copy-") as folder:
            file = Path(folder, "file")
            store.get_file(f"{old}/{name}", file)
            store.put_file(f"{new}/{name}", file)

    with ThreadPoolExecutor(FILES_AT_ONCE, thread_name_prefix="spotladder-copy") as pool:
        list(pool.map(copy, wanted))
        list(pool.map(lambda name: store.put_file(f"{new}/{name}", state / name), committed - {PLACE}))
    _log.info("copied %d files of the sweep in %s", len(wanted), old)
