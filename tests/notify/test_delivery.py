"""Messages reach real receivers: once, together if there are many, again after a failure; or a warning says so."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from spotladder.notify import beside, targets
from spotladder.notify import outbox as outbox_module
from spotladder.notify.follow import Follower
from spotladder.notify.messages import Message
from spotladder.notify.notices import Kind, Notice
from spotladder.notify.outbox import MAX_WAITING, TRIES, Outbox
from spotladder.notify.targets import Target, Undelivered, signed, target_of
from tests.notify.receiver import receiving


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("WINDOW", 0.01), ("FIRST_PAUSE", 0.001), ("LONGEST_PAUSE", 0.001)):
        monkeypatch.setattr(outbox_module, name, seconds)


def notice(job: str = "digits", kind: Kind = Kind.FAILED) -> Notice:
    return Notice(
        kind=kind, where="west", namespace="team-a", job=job, uid=f"uid-{job}", attempt=3, detail="", at=0.0,
        text=f"team-a/{job} has failed",
    )  # fmt: skip


@asynccontextmanager
async def sending(*receivers: Target) -> AsyncIterator[tuple[Outbox, list[str]]]:
    """An outbox that runs, and the warnings that it gives."""
    warnings: list[str] = []
    outbox = Outbox(receivers, warnings.append)
    task = asyncio.create_task(outbox.run())
    try:
        yield outbox, warnings
    finally:
        task.cancel()


async def test_a_webhook_gets_cloud_events_with_a_signature() -> None:
    async with receiving() as receiver:
        await target_of(f"webhook+http://{receiver.address}/jobs", "whsec_" + base64.b64encode(b"key").decode()).send(
            Message((notice(),))
        )
    event = receiver.events[0]
    assert (event["specversion"], event["type"], event["id"]) == (
        "1.0",
        "io.spotladder.job.failed",
        "uid-digits/3/Failed/",
    )
    assert (event["source"], event["time"]) == ("/spotladder/west/team-a/digits", "1970-01-01T00:00:00Z")
    headers = receiver.headers[0]
    assert headers["Content-Type"] == "application/cloudevents-batch+json"
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + receiver.bodies[0]
    wanted = base64.b64encode(hmac.new(b"key", content, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{wanted}"


def test_a_repetition_has_the_same_id_and_without_a_key_no_signature() -> None:
    one, again = signed(b"body", b"", 1.0), signed(b"body", b"", 2.0)
    assert one["webhook-id"] == again["webhook-id"]
    assert "webhook-signature" not in one


async def test_a_service_of_apprise_gets_title_and_text() -> None:
    async with receiving() as receiver:
        await target_of(f"json://{receiver.address}/jobs").send(Message((notice(),)))
    body = json.loads(receiver.bodies[0])
    assert (body["title"], body["message"]) == ("Failed: team-a/digits (west)", "team-a/digits has failed")


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("@everyone", "@\u200beveryone"),
        ("<!channel> <http://evil|here>", "<\u200b!channel> <\u200bhttp://evil|here>"),
        ("[here](http://evil)", "[here]\u200b(http://evil)"),
    ],
)
async def test_what_a_program_prints_calls_nobody_and_is_no_markup(printed: str, shown: str) -> None:
    message = Message((replace(notice(), text=f"failed: {printed}"),))
    async with receiving() as receiver:
        await target_of(f"json://{receiver.address}/jobs").send(message)
        await target_of(f"json://{receiver.address}/mail?format=html").send(message)
    plain, mail = (json.loads(body)["message"] for body in receiver.bodies)
    assert plain == f"failed: {shown}"
    assert "<" not in mail.replace("<br", "")


async def test_a_storm_is_one_message() -> None:
    async with receiving() as receiver, sending(target_of(f"webhook+http://{receiver.address}/")) as (outbox, warnings):
        for number in range(500):
            outbox.add([notice(f"job-{number}", Kind.FELL_BACK)])
        await outbox.flush()
        assert (len(receiver.bodies), len(receiver.events), warnings) == (1, 500, [])


def test_a_digest_counts_kinds_and_lists_the_first() -> None:
    message = Message((*(notice(f"job-{number}", Kind.FELL_BACK) for number in range(24)), notice("other")))
    assert message.title == "24 jobs fell back, 1 job failed"
    assert message.body.splitlines()[-1] == "and 5 more"
    assert len(message.body.splitlines()) == 21


@pytest.mark.parametrize("failures", [(500, 503), (429,), (302,)], ids=["fails", "throttles", "redirects"])
async def test_a_receiver_that_recovers_gets_the_message_once(failures: tuple[int, ...]) -> None:
    async with (
        receiving(*failures) as receiver,
        sending(target_of(f"webhook+http://{receiver.address}/")) as (outbox, warnings),
    ):
        outbox.add([notice()])
        await outbox.flush()
        assert (len(receiver.events), receiver.asked, warnings) == (1, len(failures) + 1, [])


async def test_a_receiver_that_hangs_does_not_delay_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "TIMEOUT", 0.2)
    async with (
        receiving(*[0] * TRIES) as silent,
        receiving() as receiver,
        sending(
            target_of(f"webhook+http://{silent.address}/secret-path"), target_of(f"webhook+http://{receiver.address}/")
        ) as (outbox, warnings),
    ):
        outbox.add([notice()])
        await outbox.flush()
        assert (len(receiver.events), silent.asked) == (1, TRIES)
        assert warnings == ["webhook 127.0.0.1: no answer in 0.2 s, 8 times; lost: Failed: team-a/digits (west)"]


async def test_messages_that_wait_have_a_limit() -> None:
    class Never:
        name = "never"

        async def send(self, message: Message) -> None:
            await asyncio.Event().wait()

    warnings: list[str] = []
    outbox = Outbox([Never()], warnings.append)
    for number in range(MAX_WAITING + 1):
        outbox.add([notice(f"job-{number}")])
        outbox._post()
    assert warnings == [f"never: {MAX_WAITING} messages wait already; lost: Failed: team-a/job-{MAX_WAITING} (west)"]


@pytest.mark.parametrize("url", ["json://127.0.0.1:1/secret", "webhook+http://127.0.0.1:1/secret"])
async def test_an_address_where_nothing_listens_is_undelivered_and_stays_secret(url: str) -> None:
    with pytest.raises(Undelivered) as caught:
        await target_of(url).send(Message((notice(),)))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("nonsense://secret", "", "the address nonsense://… is none that Apprise understands"),
        ("webhook+https:///secret", "", "the address of a webhook has no host"),
        ("webhook+https://[host/secret", "", r"the address webhook\+https://… is not valid"),
        ("webhook+https://host:port/secret", "", r"the address webhook\+https://… is not valid"),
        ("slack:/secret", "", "the address ://… is none that Apprise understands"),
        ("webhook+https://host/secret", "whsec_?", "the rest is not base64"),
    ],
)
def test_an_address_that_is_none_is_refused_without_its_secrets(url: str, key: str, said: str) -> None:
    with pytest.raises(InvalidSpec, match=said) as caught:
        target_of(url, key)
    assert "/secret" not in str(caught.value)


async def test_a_defect_of_a_service_is_undelivered_and_does_not_end_the_messages() -> None:
    async with receiving() as receiver:
        service = target_of(f"json://{receiver.address}/secret")

        def defect(**_message: str) -> bool:
            raise KeyError("secret")

        service._service.notify = defect  # type: ignore[attr-defined]
        async with sending(service) as (outbox, warnings):
            outbox.add([notice()])
            await outbox.flush()
    assert warnings == ["json://…: KeyError, 8 times; lost: Failed: team-a/digits (west)"]


async def test_what_is_lost_at_the_end_of_a_run_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "LAST_SECONDS", 0.2)
    monkeypatch.setattr(Follower, "look", lambda following: following._outbox.add([notice()]))
    warnings: list[str] = []
    async with receiving(0, 0) as silent:
        ready = asyncio.Event()
        target = target_of(f"webhook+http://{silent.address}/secret")
        run = asyncio.create_task(
            beside.notify_of_runs(tmp_path, [target], warnings.append, lambda _ready: ready.set())
        )
        await ready.wait()
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    assert warnings == ["the last messages were not delivered within 0.2 s"]
