"""Real Ray nodes: ports and folders do not collide, and no process outlives `kill -9` of the runner."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from spotladder.local.gpus import GpuShares
from spotladder.local.nodes import Head, NodeSettings, RayNode, Worker
from spotladder.local.reaper import Reaper, end_all, members
from spotladder.local.scratch import new_scratch
from tests.waiting import eventually

LABELS = {"spotladder.io/tier": "spot-a"}


class NodeHost:
    """A separate machine for one test; `close` ends its processes and checks that none is left."""

    def __init__(self, folder: Path) -> None:
        self.mark = uuid.uuid4().hex
        self.scratch = new_scratch(self.mark)
        self.reaper = Reaper(self.mark, self.scratch.path, self.scratch.lock)
        self.machine = NodeSettings(self.mark, self.scratch.path, folder, folder, self.reaper, 80 * 1024**2)

    def up(self, *nodes: RayNode) -> None:
        assert eventually(lambda: all(node.up or node.failed() for node in nodes))
        assert [node.failed() for node in nodes] == [None] * len(nodes)

    def close(self) -> None:
        self.reaper.close()
        assert members(self.mark, set()) == []
        self.scratch.close()
        assert not self.scratch.path.exists()


def commands(node: RayNode) -> list[str]:
    """The command lines of the processes of a node."""
    return [" ".join(psutil.Process(pid).cmdline()) for pid in members("", {node.session})]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[NodeHost]:
    place = NodeHost(tmp_path)
    yield place
    place.close()


def test_the_scratch_path_is_short_enough_for_sockets_with_any_tmpdir(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / ("deep" * 20)))
    scratch = new_scratch(uuid.uuid4().hex)
    try:
        longest = (
            scratch.path / "a1234-w64-3" / "session_2026-11-21_14-06-47_123456_1234567" / "sockets" / "plasma_store.1"
        )
        assert len(str(longest)) < 104
    finally:
        scratch.close()
        shutil.rmtree(scratch.path)


def test_only_workers_offer_gpus(place: NodeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would detect the machine's GPUs on the head too, and place ranks on it that no eviction reaches."""
    shown = 'echo "visible: $CUDA_VISIBLE_DEVICES; $*"'
    monkeypatch.setattr("spotladder.local.nodes._ray", lambda: ["sh", "-c", shown, ""])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    machine = replace(place.machine, gpus=GpuShares(("0", "1")))
    head = Head("h1", machine)
    workers = [Worker(f"n{n}", machine, "x:1", cpus=1, labels=LABELS, drain=0, gpus=1) for n in (1, 2)]
    plain = Worker("n3", machine, "x:1", cpus=1, labels=LABELS, drain=0)
    nodes = [head, *workers, plain]
    assert eventually(lambda: not any(node.alive for node in nodes))
    outputs = [node.log.read_text() for node in nodes]
    assert ["--num-gpus=" in output for output in outputs] == [True, True, True, False]
    assert "--num-gpus=0" in outputs[0]
    assert [output.partition(";")[0] for output in outputs] == ["visible: ", "visible: 0", "visible: 1", "visible: "]
    workers[0].kill()
    assert machine.gpus.take(1) == ("0",)
    for node in nodes:
        node.kill()


def test_a_failed_node_start_reports_the_cause(place: NodeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "spotladder.local.nodes._ray", lambda: ["sh", "-c", "echo; echo 'ValueError: no such option'", ""]
    )
    node = RayNode("n1", place.machine, [])
    assert eventually(lambda: node.failed() is not None)
    assert "ValueError: no such option" in (node.failed() or "")
    assert str(node.log) in (node.failed() or "")


def test_each_node_has_a_cache_of_its_own_that_is_lost_with_it(
    place: NodeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'cache=$SPOTLADDER_CACHE; echo "cache: $cache $SPOTLADDER_CACHE_SIZE"; [ "$cache" ] && mkdir -p "$cache"'
    monkeypatch.setattr("spotladder.local.nodes._ray", lambda: ["sh", "-c", script])
    machine = replace(place.machine, cache_size=1000)
    first, second, without = (
        RayNode(name, used, []) for name, used in (("n1", machine), ("n2", machine), ("n3", place.machine))
    )
    assert eventually(lambda: not any(node.alive for node in (first, second, without)))
    folders = [node.folder / "checkpoint-cache" for node in (first, second)]
    assert first.log.read_text() == f"cache: {folders[0]} 1000\n"
    assert second.log.read_text() == f"cache: {folders[1]} 1000\n"
    assert without.log.read_text() == "cache:  \n"
    first.kill()
    assert [folder.exists() for folder in folders] == [False, True]
    second.kill()
    without.kill()


def test_a_head_is_up_once_it_has_printed_its_complete_address(
    place: NodeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spotladder.local.nodes._ray", lambda: ["sh", "-c", "sleep 60"])
    head = Head("h1", place.machine)
    try:
        for written in ("Ray runtime started.\n", "  ray start --address='10.0.0.1:63"):
            with head.log.open("a") as log:
                log.write(written)
            assert not head.up
        with head.log.open("a") as log:
            log.write("79'\n")
        assert head.up
        assert head.address == "10.0.0.1:6379"
    finally:
        head.kill()


@pytest.fixture
def _ray_of_the_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Ray cluster of the user has the default ports, and RAY_ADDRESS points to it."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    with ExitStack() as stack:
        for port in (6379, 8265, 10001, 52365, 44227):  # Ray's defaults; another test may hold one already
            listener = stack.enter_context(socket.socket())
            with suppress(OSError):
                listener.bind(("", port))
                listener.listen()
        yield


@pytest.mark.ray
@pytest.mark.usefixtures("_ray_of_the_user")
def test_killing_one_of_two_parallel_runs_does_not_affect_the_other(tmp_path: Path) -> None:
    """Two heads run at the same time, two workers start simultaneously, and one runner is killed with SIGKILL. None of
    them joins the cluster of the user."""
    (tmp_path / "own").mkdir()
    (tmp_path / "other").mkdir()
    other_mark = uuid.uuid4().hex
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER_RUN, other_mark, str(tmp_path / "other")], stdout=subprocess.PIPE, text=True
    )
    place = NodeHost(tmp_path / "own")
    try:
        head = Head("h1", place.machine)
        place.up(head)
        assert not head.address.endswith(":6379")
        assert other.stdout is not None
        sessions = {int(word) for word in other.stdout.readline().split()}
        assert len(sessions) == 2, "the other run's head and worker"
        workers = [Worker(f"n{index}", place.machine, head.address, cpus=1, labels=LABELS, drain=5) for index in (1, 2)]
        place.up(*workers)
        assert eventually(lambda: head.agent is not None)
        unwanted = ("dashboard.py", "client.server", "log_monitor.py")
        assert not [command for command in commands(head) if any(name in command for name in unwanted)]
        unwanted = ("DashboardAgent", "dashboard/agent.py", "log_monitor.py")
        assert not [command for command in commands(workers[0]) if any(name in command for name in unwanted)]
        assert len(members(other_mark, sessions)) > 5

        other.send_signal(signal.SIGKILL)
        assert eventually(lambda: members(other_mark, sessions) == []), "no process outlives kill -9"
        assert eventually(lambda: not (tmp_path / "other" / "scratch").exists())
        assert all(node.alive for node in (head, *workers)), "the other run is not affected"

        workers[0].notice()
        assert eventually(lambda: not workers[0].alive), "an idle node drains at once"
        workers[1].kill()
        assert members("", {workers[1].session}) == []
        assert head.alive
    finally:
        other.kill()
        other.wait()
        place.close()
        assert end_all(other_mark, set()) == []


OTHER_RUN = """\
import pathlib, sys, time
from spotladder.local.nodes import Head, NodeSettings, Worker
from spotladder.local.reaper import Reaper
from spotladder.local.scratch import new_scratch
mark, folder = sys.argv[1], pathlib.Path(sys.argv[2])
scratch = new_scratch(mark)
pathlib.Path(folder, "scratch").symlink_to(scratch.path)
reaper = Reaper(mark, scratch.path, scratch.lock)
machine = NodeSettings(mark, scratch.path, folder, folder, reaper, 80 * 1024**2)
head = Head("h1", machine)
while not head.up:
    assert not head.failed(), head.failed()
    time.sleep(0.05)
worker = Worker("n1", machine, head.address, cpus=1, labels={"spotladder.io/tier": "x"}, drain=5)
while not worker.up:
    assert not worker.failed(), worker.failed()
    time.sleep(0.05)
print(head.session, worker.session, flush=True)
time.sleep(600)
"""
