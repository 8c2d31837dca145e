"""The notifier follows jobs from its start, and the command checks its receivers."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from spotladder.cli.main import main
from spotladder.local.state import RunIdentity
from spotladder.notify.follow import Follower
from spotladder.notify.notices import Kind, Notice
from spotladder.notify.outbox import Outbox
from spotladder.places.this_machine import ThisMachine
from spotladder.records.timeline import read
from spotladder.timestamps import utc_timestamp
from tests.notify.receiver import receiving
from tests.web.builders import Shelf, job, recorded_run


def follower(shelf: Shelf, *kinds: Kind) -> tuple[Follower, list[Kind]]:
    told: list[Kind] = []
    return Follower([shelf], Outbox([], print), kinds or frozenset(Kind), lambda notice: told.append(notice.kind)), told


def test_what_happened_before_is_not_told_and_a_new_job_is() -> None:
    shelf = Shelf(job("old", "Failed"))
    following, told = follower(shelf)
    following.look()
    new = job("new", "Succeeded")
    new["metadata"]["creationTimestamp"] = utc_timestamp(4e9)
    shelf.put(job("old", "Failed"), new)
    following.look()
    following.look()
    assert told == [Kind.SUCCEEDED]


def test_a_deleted_job_with_the_same_name_is_another() -> None:
    one, other = job("digits"), job("digits", "Failed")
    one["metadata"]["uid"], other["metadata"]["uid"] = "one", "other"
    shelf = Shelf(one)
    following, told = follower(shelf)
    following.look()
    shelf.put(other)
    following.look()
    assert told == []


def test_a_run_that_starts_afresh_is_another(tmp_path: Path) -> None:
    """Regression: the tiers and the end of the new run were compared with those of the one before."""
    folder, here, told = recorded_run(tmp_path), ThisMachine(tmp_path), list[Notice]()
    following = Follower([here], Outbox([], print), told=told.append)
    for uid, began in (("one", 0.0), ("other", 4e9)):
        folder.save_run(RunIdentity(began, "3.11", "2.60.0", "file:///checkpoints", uid=uid))
        folder.save(read(folder.timeline).state)
        here.look()
        following.look()
    assert [(notice.kind, notice.uid) for notice in told] == [(Kind.SUCCEEDED, "other")]


def test_the_end_of_a_job_is_not_told_again_when_its_records_show_that_it_was_deleted() -> None:
    new = job("new")
    new["metadata"]["creationTimestamp"] = utc_timestamp(4e9)
    shelf = Shelf(new)
    following, told = follower(shelf)
    following.look()
    ended = {**job("new", "Succeeded"), "metadata": new["metadata"]}
    for held in ([ended], [], [{**ended, "deleted": True}]):
        shelf.put(*held)
        following.look()
    assert told == [Kind.SUCCEEDED]


def test_only_the_wanted_kinds_are_told() -> None:
    shelf = Shelf(job("a"), job("b"))
    following, told = follower(shelf, Kind.FAILED)
    following.look()
    shelf.put(job("a", "Failed"), job("b", "Succeeded"))
    following.look()
    assert told == [Kind.FAILED]


def test_only_the_named_jobs_are_told() -> None:
    shelf, told = Shelf(job("a"), job("b")), list[str]()
    following = Follower([shelf], Outbox([], print), told=lambda notice: told.append(notice.job), names=["b"])
    following.look()
    shelf.put(job("a", "Failed"), job("b", "Failed"))
    following.look()
    assert told == ["b"]


async def test_the_test_message_reaches_each_receiver(tmp_path: Path) -> None:
    async with receiving() as receiver:
        file = tmp_path / "receivers.txt"
        text = f"webhook+http://{receiver.address}/jobs\n\n# of the team\njson://{receiver.address}/jobs\n"
        file.write_text(text, encoding="utf-8-sig")
        assert await asyncio.to_thread(main, ["notify", "--to-file", str(file), "--test"]) == 0
        assert len(receiver.bodies) == 2


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_what_waits_is_sent_before_the_command_ends(ending: signal.Signals, tmp_path: Path) -> None:
    async with receiving() as receiver:
        folder, state = recorded_run(tmp_path / "new"), tmp_path / "state"
        folder.save_run(RunIdentity(4e9, "3.11", "2.60.0", "file:///checkpoints"))
        program = (sys.executable, "-m", "spotladder.cli.main", "notify", "--state-dir", str(state))
        command = await asyncio.create_subprocess_exec(
            *program, "--to", f"webhook+http://{receiver.address}/jobs", stdout=PIPE, stderr=PIPE
        )
        assert command.stdout is not None
        assert command.stderr is not None
        assert b"follows this machine" in await command.stderr.readline()
        (tmp_path / "new").rename(state)
        assert b"Succeeded: default/digits-tensorflow" in await command.stdout.readline()
        command.send_signal(ending)
        assert (await command.communicate())[1] == b""
        assert [event["data"]["kind"] for event in receiver.events] == ["Succeeded"]


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "there is no receiver: name one with --to URL"),
        (["--otlp", "http://127.0.0.1:1", "--test"], 2, "there is no receiver: name one with --to URL"),
        (["--to", "nonsense://x"], 2, "is none that Apprise understands"),
        (["--to-file", "/none/receivers.txt"], 5, "receivers.txt: cannot be read: No such file or directory; name"),
        (["--to-file", "receivers.txt"], 2, "receivers.txt:3: the address nonsense://… is none that Apprise"),
        (["--to", "webhook+http://127.0.0.1:1/x", "--test"], 5, "webhook 127.0.0.1: no connection: check the host"),
    ],
)
def test_bad_input_is_one_clear_line(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str], in_a_folder: Path
) -> None:
    (in_a_folder / "receivers.txt").write_text("# of the team\n\nnonsense://secret\n", encoding="utf-8")
    assert main(["notify", *arguments]) == code
    assert said in capsys.readouterr().err
