"""The sources of eviction notices, and the listener that polls them.

The sources are a file (`SPOTLADDER_NOTICE`, set by the controller: `{"kind", "deadline", "reason"}`; an empty file is
no notice), in local runs also a file of the node (`SPOTLADDER_NODE_NOTICE`), SIGTERM, and Ray's own preemption
information. The first notice counts and cannot be withdrawn; only a handover is replaced by a
later notice that ends the program. A request to commit and to continue is kept beside it, the newest one. The signal
handler is installed only while a listener exists; it passes a second SIGTERM to the previous handler.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from spotladder.core.contract import Notice, NoticeKind
from spotladder.train.rayprocess import train_context

_log = logging.getLogger("spotladder.train")

FILE_POLL_INTERVAL = 0.1
"""Seconds between two checks of the notice file. A check is one `stat` of a local file; steps may be shorter."""

CONTROLLER_GRACE_PERIOD = 3.0
"""Seconds for which Ray's preemption information waits for the controller's notice."""


class NoticeSource(Protocol):
    """A source of eviction notices. It is polled before every step, so it must return at once."""

    def poll(self) -> Notice | None: ...


class Listener:
    """All sources as one: keeps the first notice of any of them, and a handover until there is another notice."""

    def __init__(self, sources: Sequence[NoticeSource], wall: Callable[[], float] = time.time) -> None:
        self._sources = sources
        self._since = wall()
        self._heard: Notice | None = None
        self.request: Notice | None = None
        """The newest request to commit and to continue."""

    def poll(self) -> Notice | None:
        if self._heard is None or self._heard.kind == NoticeKind.HANDOVER:
            found = next((notice for source in self._sources if (notice := self._ending(source.poll()))), None)
            if found not in (None, self._heard):
                self._heard = found
                _log.warning("%s (%s): committing and stopping", found.reason, found.kind)
        return self._heard

    def _ending(self, notice: Notice | None) -> Notice | None:
        """The notice, unless it is a request to commit and to continue. One that is older than this process was for the
        process before it."""
        if notice is None or notice.kind != NoticeKind.COMMIT:
            return notice
        if notice != self.request and (notice.deadline is None or notice.deadline >= self._since):
            self.request = notice
            _log.warning("%s: committing, and continuing", notice.reason)
        return None

    @property
    def heard(self) -> Notice | None:
        """The notice received so far; polls no source."""
        return self._heard

    @property
    def notices(self) -> list[Notice]:
        """The notice and the request received so far; polls no source."""
        return [notice for notice in (self._heard, self.request) if notice is not None]

    def hear(self, notice: Notice) -> None:
        """Record a notice without polling the sources."""
        self._heard = self._heard or notice

    def close(self) -> None:
        """Remove the handler of SIGTERM."""
        for source in self._sources:
            if isinstance(source, Terminate):
                source.close()


class NoticeFile:
    """A notice file that the controller or a downward-API volume writes."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._next = float("-inf")
        self._seen: tuple[int, int, int] | None = None

    def poll(self) -> Notice | None:
        now = self._clock()
        if now < self._next:
            return None
        self._next = now + FILE_POLL_INTERVAL
        try:
            found = self._path.stat()
            version = (found.st_mtime_ns, found.st_size, found.st_ino)
            if version == self._seen or not found.st_size:
                return None
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None  # The file does not exist yet or is being replaced: the next poll reads it.
        self._seen = version
        return read_notice(text, str(self._path))


class Terminate:
    """SIGTERM as a notice. The first `poll` on the main thread installs the handler, `close` removes it. It ends a
    process that the program has forked, as without the handler."""

    def __init__(self) -> None:
        self._before: Any = None
        self._set = False
        self._heard: Notice | None = None
        self._process = os.getpid()

    def poll(self) -> Notice | None:
        if not self._set and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._handle)
            self._set = True
        return self._heard

    def close(self) -> None:
        if self._set and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._before if self._before is not None else signal.SIG_DFL)
            self._set = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._heard is None and os.getpid() == self._process:
            self._heard = Notice(reason="SIGTERM")
            return
        self.close()
        if callable(self._before):
            self._before(number, frame)
        elif self._before != signal.SIG_IGN:
            signal.raise_signal(signal.SIGTERM)


class RayPreemption:
    """Ray Train's information about nodes of this worker group that are being drained, after `patience` seconds.

    Ray's public API is a barrier over all ranks. Here each rank reads the information of its own worker, and the ranks
    agree over the channel. The information does not say whether the program ends or continues on other nodes, so the
    controller's notice has `patience` seconds to arrive first. Until then it is a request to commit and to continue.

    An elastic job that keeps `least` ranks without those nodes continues: the information is then a handover on the
    ranks of the nodes, and no notice on the others. 0: not elastic.
    """

    def __init__(self, patience: float = 0.0, clock: Callable[[], float] = time.monotonic, least: int = 0) -> None:
        self._patience = patience
        self._least = least
        self._clock = clock
        self._since: float | None = None

    def poll(self) -> Notice | None:
        context = train_context()
        info = getattr(getattr(context, "preemption_context", None), "preemption_info", None)
        if info is None:
            return None
        self._since = self._clock() if self._since is None else self._since
        deadline = info.deadline_ms / 1000 if info.deadline_ms else None
        if self._clock() - self._since < self._patience:
            return Notice(NoticeKind.COMMIT, deadline=deadline)
        if not self._least:
            return Notice(deadline=deadline)
        going = {rank for ranks in info.preempted_node_to_ranks.values() for rank in ranks}
        if context.get_world_size() - len(going) < self._least:
            return Notice(deadline=deadline)
        return Notice(NoticeKind.HANDOVER, deadline=deadline) if context.get_world_rank() in going else None


def read_notice(text: str, where: str) -> Notice | None:
    """Parse the content of a notice; None if it is empty, or if it only lets a standby attempt take over.

    Content that cannot be parsed is also a notice: only notices are written there, and an unneeded commit and stop
    loses less than a kill without a commit.
    """
    if not text.strip():
        return None
    try:
        notice = Notice.decode(text)
    except ValueError as error:
        _log.warning("cannot parse the notice in %s (%s): handling it as an eviction notice", where, error)
        return Notice()
    return None if notice.kind == NoticeKind.TAKE_OVER else notice


def listen(paths: Sequence[Path], least: int = 0) -> Listener:
    """All notice sources of this process. `least` is the smallest number of ranks of an elastic job."""
    patience = CONTROLLER_GRACE_PERIOD if paths else 0.0
    return Listener([Terminate(), *(NoticeFile(path) for path in paths), RayPreemption(patience, least=least)])
