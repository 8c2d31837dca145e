"""An outage of the store does not end the training and costs at most one interval."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spotladder.checkpoints.store import RightsRefused
from spotladder.core.contract import Notice
from spotladder.errors import Fenced
from spotladder.output.outage import last_reported
from spotladder.train.interruption import Interrupted
from tests.train.outage import OutageSite

HOUR = 3600.0
STEP = 5.0
KINDS = ("refused", "503", "hanging")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OutageSite:
    return OutageSite(tmp_path, monkeypatch)


@pytest.mark.parametrize(("kind", "interval"), [("refused", "60s"), ("503", "12steps"), ("hanging", "60s")])
def test_an_outage_of_two_hours_costs_at_most_one_interval(site: OutageSite, kind: str, interval: str) -> None:
    store, begins, ends = site.store, 100.0, 100.0 + 2 * HOUR
    store.kind, store.begins, store.ends = kind, begins, ends
    most_folders, newest_after, heartbeat = 0, 0, {}

    def on_step(_: int) -> None:
        nonlocal most_folders, newest_after, heartbeat
        most_folders = max(most_folders, site.folders())
        if begins + HOUR <= site.time.now < begins + HOUR + 2 * STEP:
            heartbeat = json.loads((site.folder / "heartbeat").read_text())
        if ends + 120 <= site.time.now < ends + 120 + 20 * STEP and not newest_after:
            newest_after = site.newest()

    steps = int((ends + 600) / STEP)
    site.train(site.job(interval=interval), steps, STEP, on_step)
    held_up = site.time.now - steps * STEP
    assert held_up <= 90, "the program waited for the store"
    assert most_folders <= 3, "older checkpoints than the newest wait for their upload"
    assert heartbeat["step"] > 0
    assert heartbeat["store"]["since"] == pytest.approx(160, abs=75)
    assert "the bucket does not answer" in heartbeat["store"]["message"]
    assert newest_after * STEP >= ends - 60 - held_up
    assert "store" not in json.loads((site.folder / "heartbeat").read_text())
    assert site.newest() == steps
    assert not site.orphans()
    assert site.folders() == 0
    assert len({commit.attempt for commit in site.log().commits()}) == 1


def test_the_output_reports_the_outage_each_minute_and_its_end(
    site: OutageSite, caplog: pytest.LogCaptureFixture
) -> None:
    """A controller without access to the store reads the outage from the program's output."""
    site.store.begins, site.store.ends = 100.0, 700.0
    seen: set[str] = set()

    def on_step(_: int) -> None:
        reported = last_reported("\n".join(caplog.messages))
        if reported is not None:
            seen.add(reported.line)
            assert reported.outage.message == "the bucket does not answer (refused)"
            assert reported.outage.since == pytest.approx(100, abs=75)

    site.train(site.job(interval="60s"), 200, STEP, on_step)
    assert len(seen) >= 6
    assert last_reported("\n".join(caplog.messages)) is None


@pytest.mark.parametrize(("kind", "at"), [("refused", 300.0), ("503", 1000.0), ("hanging", 300.0)])
def test_a_notice_retries_the_last_commit_until_its_deadline(site: OutageSite, kind: str, at: float) -> None:
    site.store.kind, site.store.begins, site.store.ends = kind, 100.0, at + 40.0
    made = site.job(interval="60s")

    def on_step(_: int) -> None:
        if site.time.now >= at:
            made._member.listener.hear(Notice("notice", "EvictionNotice", at + 120))

    with pytest.raises(Interrupted) as interrupted:
        site.train(made, 10_000, STEP, on_step)
    assert site.time.now <= at + 120, "the deadline has passed"
    assert interrupted.value.step * STEP == pytest.approx(at, abs=3 * STEP + 60)
    assert site.newest() == interrupted.value.step


@pytest.mark.parametrize("kind", KINDS)
def test_the_start_waits_for_the_end_of_an_outage(site: OutageSite, kind: str) -> None:
    site.store.kind, site.store.ends = kind, 2 * HOUR
    made = site.job(interval="60s")
    assert site.time.now >= 2 * HOUR
    assert json.loads((site.folder / "heartbeat").read_text()).keys() == {"at", "phase", "reached"}
    starts = [entry for entry in site.log().tail() if entry.kind == "start"]
    assert len(starts) == 1, "the start was appended twice"
    site.train(made, 20, STEP)
    assert site.newest() == 20


@pytest.mark.parametrize("kind", KINDS)
def test_the_resume_waits_for_the_end_of_an_outage(site: OutageSite, kind: str) -> None:
    site.train(site.job(interval="10steps"), 50, STEP)
    again = site.job(interval="10steps", attempt=2)
    site.store.kind, site.store.begins, site.store.ends = kind, site.time.now, site.time.now + HOUR
    with again.resume() as found:
        assert found is not None
        assert found.step == 50
    assert site.time.now >= site.store.ends


def test_a_writer_that_was_replaced_during_an_outage_exits(site: OutageSite) -> None:
    site.store.begins, site.store.ends = 100.0, 1000.0
    made = site.job(interval="10steps")
    replaced = False

    def on_step(_: int) -> None:
        nonlocal replaced
        if site.time.now > 500 and not replaced:
            replaced = True
            site.log().start(2, "on-demand")

    with pytest.raises(Fenced):
        site.train(made, 10_000, STEP, on_step)
    assert site.left == [76]
    assert site.newest() * STEP <= 100
    assert site.time.now <= 1100


def test_the_exit_waits_for_the_last_commit_during_an_outage(site: OutageSite) -> None:
    site.store.begins, site.store.ends = 20.0, 1000.0
    made = site.job(interval="1h")
    with made.commit(1) as folder:
        (folder / "w").write_text("1")
    site.time.background = True
    site.time.pass_by(20.0)
    with made.commit(2) as folder:
        (folder / "w").write_text("2")
    made.close()
    assert site.newest() == 2
    assert site.time.now >= 1000


# --- permissions
# ---------------------------------------------------------------------------------------------------------


def test_credentials_that_are_not_renewed_in_time_end_the_attempt(site: OutageSite) -> None:
    site.store.kind, site.store.begins, site.store.ends, site.store.renewable = "rights", 100.0, HOUR, True
    with pytest.raises(RightsRefused):
        site.train(site.job(interval="10steps"), 10_000, STEP)
    assert site.time.now <= 400


@pytest.mark.parametrize("renewable", [False, True])
def test_refused_credentials_at_the_start(site: OutageSite, renewable: bool) -> None:
    site.store.kind, site.store.ends, site.store.renewable = "rights", 60.0 if renewable else HOUR, renewable
    if renewable:
        site.job()
        assert site.time.now >= 60
        return
    with pytest.raises(RightsRefused):
        site.job()
