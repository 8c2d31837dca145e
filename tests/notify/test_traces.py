"""Traces of restarts: when they are sent, and what a collector gets."""

from __future__ import annotations

import asyncio
import sys
import time
from unittest.mock import Mock

import pytest

from spotladder.cli.main import main
from spotladder.display.report import gather
from spotladder.display.report.facts import RunFacts
from spotladder.notify.traces import LONGEST_PAUSE, Tracer
from spotladder.records.model import Beat, Began
from spotladder.records.recorded import Recorded
from spotladder.records.restarts import Restart
from spotladder.timestamps import utc_timestamp
from tests.core.builders import spec, tier
from tests.notify.receiver import receiving
from tests.records.test_restarts import BEGUN, NOTICED, STARTED
from tests.web.builders import Shelf, job

RECORDS = (Began(0.0, "digits", "team-a", spec(tier("tier-1"))), *BEGUN, *NOTICED)


class Recording(Shelf):
    """A place whose jobs have these records, and a receiver of restarts."""

    def __init__(self) -> None:
        super().__init__(job("digits", attempt=1))
        self.recorded = Recorded(RECORDS)
        self.reads = 0
        self.now = 0.0
        self.sent: list[Restart] = []
        self.problems: list[str] = []
        self.tracer = Tracer([self], self, self.problems.append, lambda: self.now)

    async def facts(self, namespace: str, name: str) -> RunFacts | None:
        self.reads += 1
        await super().facts(namespace, name)
        return gather(self.recorded)

    def send(self, place: str, facts: RunFacts, restart: Restart) -> None:
        assert (place, facts.job) == ("west", "digits")
        self.sent.append(restart)

    async def look(self, attempt: int, phase: str = "Running", *, after: float = LONGEST_PAUSE) -> list[int]:
        self.now += after
        self.put(job("digits", phase, attempt=attempt))
        await self.tracer.look()
        return [restart.attempt for restart in self.sent]


async def test_a_restart_is_sent_once_when_its_first_step_was_observed() -> None:
    place = Recording()
    assert await place.look(1) == []
    assert await place.look(2, "Pending") == []
    assert place.reads == 0, "it does not train again yet"
    assert await place.look(2) == []
    assert await place.look(2, after=1.0) == []
    assert place.reads == 1, "the next read waits"
    place.recorded = Recorded((*RECORDS, *STARTED, Beat(140, 2, 210)))
    assert await place.look(2) == [2]
    assert await place.look(2) == [2]
    assert place.reads == 2


@pytest.mark.parametrize(("attempt", "phase"), [(3, "Pending"), (2, "Failed")])
async def test_a_restart_that_never_trained_is_sent_when_the_job_goes_on_or_ends(attempt: int, phase: str) -> None:
    place = Recording()
    await place.look(1)
    assert await place.look(attempt, phase) == [2]
    assert not place.sent[0].complete


async def test_restarts_from_before_the_start_are_not_sent_and_those_of_a_new_job_are() -> None:
    place = Recording()
    place.recorded = Recorded((*RECORDS, *STARTED))
    assert await place.look(2) == []
    new = job("digits", attempt=2)
    new["metadata"] |= {"uid": "new", "creationTimestamp": utc_timestamp(time.time() + 60)}
    place.put(new)
    await place.tracer.look()
    assert [restart.attempt for restart in place.sent] == [2]
    place.put()
    await place.tracer.look()
    place.put({**new, "deleted": True})
    await place.tracer.look()
    assert [restart.attempt for restart in place.sent] == [2], "its records are no new job"


async def test_a_defect_in_the_records_of_one_job_does_not_end_the_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Recording()
    await place.look(1)
    monkeypatch.setattr(place, "facts", Mock(side_effect=ValueError("year 9999999 is out of range")))
    assert await place.look(2) == []
    assert place.problems == ["no trace of team-a/digits yet: year 9999999 is out of range"]


async def test_records_that_cannot_be_read_are_named_once_and_read_again() -> None:
    place = Recording()
    await place.look(1)
    place.gap = "s3://bucket: access denied"
    for _ in range(2):
        assert await place.look(2) == []
    assert place.problems == ["no trace of team-a/digits yet: s3://bucket: access denied"]
    place.gap, place.recorded = "", Recorded((*RECORDS, *STARTED))
    assert await place.look(2) == [2]


async def test_a_collector_gets_a_span_of_each_part_below_that_of_the_restart() -> None:
    protocol = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    spans_to = pytest.importorskip("spotladder.notify.spans").Spans
    facts = gather(Recorded((*RECORDS, *STARTED)))
    async with receiving() as collector:
        spans = spans_to(f"http://{collector.address}/base/")
        spans.send("west", facts, facts.restarts[0])
        await asyncio.to_thread(spans.close)
    request = protocol.ExportTraceServiceRequest.FromString(collector.bodies[0])
    (resource,) = request.resource_spans
    assert [each.value.string_value for each in resource.resource.attributes if each.key == "service.name"] == [
        "spotladder"
    ]
    found = {span.name: span for scope in resource.scope_spans for span in scope.spans}
    whole = found.pop("restart")
    assert list(found) == [part.name for part in facts.restarts[0].parts]
    assert {(span.trace_id, span.parent_span_id) for span in found.values()} == {(whole.trace_id, whole.span_id)}
    assert (whole.start_time_unix_nano, whole.end_time_unix_nano) == (100 * 10**9, 138 * 10**9)
    assert found["checkpoint"].end_time_unix_nano - found["checkpoint"].start_time_unix_nano == 6 * 10**9
    about = {each.key: each.value for each in found["checkpoint"].attributes}
    assert about["k8s.namespace.name"].string_value == "team-a"
    assert about["spotladder.job"].string_value == "digits"
    assert about["spotladder.tier"].string_value == "tier-2"
    assert about["spotladder.attempt"].int_value == 2
    assert about["spotladder.noticed"].bool_value is True


def test_without_its_packages_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.delitem(sys.modules, "spotladder.notify.spans", raising=False)
    assert main(["notify"]) == 5
    assert "pip install 'spotladder[notify]'" in capsys.readouterr().err
