"""The local backend with fake nodes and a standby attempt beside the live one."""

from __future__ import annotations

import json

from spotladder.core.model import Drain, Launch, TakeOver
from spotladder.core.reasons import Reason
from tests.local.rig import BEGAN, BackendRig


def standing_by(rig: BackendRig) -> None:
    """Attempt 1 trains, and the program of attempt 2 waits until it may take over."""
    rig.start_all()
    rig.backend.launch(Launch(2, "spot-b", standby=True))
    rig.backend.observe()
    rig.up("h2")
    rig.backend.observe()
    rig.up("a2-w1-1", "a2-w2-1")
    rig.backend.observe()


def test_a_standby_attempt_starts_beside_the_live_one_and_reports_when_its_program_waits(rig: BackendRig) -> None:
    standing_by(rig)
    assert rig.observe(1).held is None
    assert (rig.observe(2).held, all(pod.ready for pod in rig.observe(2).pods)) == (False, True)
    (rig.attempt(2) / "heartbeat.json").write_text(json.dumps({"at": 1.0, "phase": "standby"}))
    assert rig.observe(2).held is True
    environments = {name.split("-")[1]: environment for name, environment in rig.submitted}
    assert environments["0002"]["SPOTLADDER_STANDBY"] == "true"
    assert "SPOTLADDER_STANDBY" not in environments["0001"]
    assert set(rig.nodes) & {"h3", "h4"} == set(), "no head is started ahead beside a standby attempt"


def test_a_takeover_is_no_request_to_stop_and_a_later_drain_is(rig: BackendRig) -> None:
    standing_by(rig)
    for _ in range(2):
        rig.backend.take_over(TakeOver(2))
    notice = rig.attempt(2) / "notice.json"
    assert json.loads(notice.read_text())["kind"] == "takeover"
    assert (rig.observe(2).exit, rig.observe(2).held) == (None, None)
    rig.backend.drain(Drain(2, BEGAN + 30, Reason.POLICY))
    rig.backend.take_over(TakeOver(2))
    assert json.loads(notice.read_text())["kind"] == "drain"
    rig.backend.take_over(TakeOver(9))  # it does not exist
