"""The local backend with fake nodes and a standby attempt beside the live one."""

from __future__ import annotations

import json

from spotladder.core.model import Launch
from tests.local.rig import BackendRig


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
