"""How a standby attempt waits: rank 0 starts to write to the commit log only when the attempt takes over.

The controller starts a standby attempt with `SPOTLADDER_STANDBY` beside the attempt that trains. When that one has
ended, the controller writes a notice of the kind `takeover`. A later notice, which drains the attempt, ends the wait
too: only the live attempt is drained.
"""

from __future__ import annotations

import logging
import time

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.standby import report_held
from spotladder.train.environment import Environment
from spotladder.train.heartbeat import Heartbeat
from spotladder.train.store_retry import StoreRetry

_log = logging.getLogger("spotladder.train")

POLL_INTERVAL = 0.1
"""Seconds between two checks of the notice file. A check is one `stat` of a local file."""


def must_wait(environment: Environment, log: CommitLog, retry: StoreRetry) -> bool:
    """Whether this attempt must wait: it was launched as a standby, and the log has no start of it yet. After an
    in-place restart it has one."""
    if not environment.standby:
        return False
    if environment.notice_file is None:
        _log.warning("SPOTLADDER_STANDBY without SPOTLADDER_NOTICE: the attempt takes over at once")
        return False
    return retry.until_answered(log.read, starting=True).attempt < environment.attempt


def wait_for_turn(environment: Environment, log: CommitLog, retry: StoreRetry, heartbeat: Heartbeat) -> None:
    """Report that the program is ready, and return when the attempt may take over."""
    retry.until_answered(lambda: report_held(log.store, environment.attempt), starting=True)
    heartbeat.enter("standby")
    _log.info("attempt %d is ready and stands by for the attempt before it", environment.attempt)
    while not _has_notice(environment):
        time.sleep(POLL_INTERVAL)
    _log.info("attempt %d takes over", environment.attempt)


def _has_notice(environment: Environment) -> bool:
    path = environment.notice_file
    try:
        return path is None or path.stat().st_size > 0
    except OSError:
        return False  # The file does not exist yet or is being replaced.
