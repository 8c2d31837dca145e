"""The channel of rank 0 with many ranks, which all connect at once."""

from __future__ import annotations

import errno
import os
import resource
import socket
import subprocess
import sys

import pytest

from spotladder.train import hub as hub_module
from spotladder.train.agreement import Agreement
from spotladder.train.hub import Hub
from spotladder.train.spoke import Spoke
from tests.train.many_ranks import STEP, ManyRanks

SIZE = 200


def test_200_ranks_join_agree_on_a_step_and_commit() -> None:
    group = ManyRanks(SIZE)
    with group.joined():
        group.agree()
        assert group.agreement.answer(STEP) is not None
        group.commit()
    (commit,) = group.log.commits()
    assert (commit.step, len(commit.files)) == (STEP, SIZE - 1)
    assert group.messages == 7 * (SIZE - 1), "messages of one agreement and one commit"


def test_rank_0_accepts_ranks_again_after_it_had_too_many_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: after the first error it accepted no other rank."""
    monkeypatch.setattr(hub_module, "ACCEPT_RETRY_INTERVAL", 0.0)
    real, errors = socket.socket.accept, [errno.EMFILE, errno.EMFILE]

    def accept(self: socket.socket) -> tuple[socket.socket, object]:
        if errors:
            code = errors.pop()
            raise OSError(code, os.strerror(code))
        return real(self)

    monkeypatch.setattr(socket.socket, "accept", accept)
    hub = Hub(2, Agreement(), timeout=60.0)
    spoke = Spoke(hub.address, 1, 2, Agreement())
    hub.complete()
    assert errors == []
    spoke.close()
    hub.close()


def test_the_limit_of_open_files_is_raised_for_the_connections() -> None:
    program = (
        "import resource\n"
        "from spotladder.train.framing import allow_connections\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))\n"
        "allow_connections(1000)\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        "allow_connections(1)\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    expected = 2024 if hard == resource.RLIM_INFINITY else min(2024, hard)
    assert done.stdout.split() == [str(expected)] * 2
