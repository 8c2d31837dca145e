"""A plan with the statistics that the controller has recorded in the status of the CapacityTiers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.cli.terminal import call
from tests.cli.test_cluster import kubeconfig
from tests.docs.markdown import ROOT

JOB = ROOT / "examples" / "on-a-cluster" / "digits.yaml"
Capture = pytest.CaptureFixture[str]

STATUS = {
    "evictionsPerNodeHour": "0.3",
    "observedHours": "40",
    "availability": "0.5",
    "attempts": 8,
    "waits": [{"upTo": "2m", "count": 7}],
}


@contextmanager
def api_server(folder: Path, objects: Mapping[str, dict[str, Any]]) -> Iterator[Path]:
    """The kubeconfig of an API server that has these objects, by their paths, and nothing else."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = objects.get(self.path.split("?")[0])
            body = json.dumps(found or {"kind": "Status", "reason": "NotFound", "code": 404}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """No line on standard error."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield kubeconfig(folder, f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()


def capacity_tier(name: str, kind: str, price: str, **more: Any) -> dict[str, Any]:
    prices = {"perNodeHour": price, "onDemandPerNodeHour": "1.41", "headPerHour": "0.1"}
    return {
        "apiVersion": "spotladder.io/v1alpha1",
        "kind": "CapacityTier",
        "metadata": {"name": name, "uid": name, "resourceVersion": "7", "generation": 1},
        "spec": {"capacityType": kind, "price": prices},
        **more,
    }


def planned(capsys: Capture, folder: Path, status: dict[str, Any]) -> dict[str, Any]:
    tiers = [
        capacity_tier("m6i-spot", "spot", "0.42", status=status),
        capacity_tier("m6i-on-demand", "on-demand", "1.41"),
    ]
    listed = {"kind": "CapacityTierList", "metadata": {"resourceVersion": "7"}, "items": tiers}
    with api_server(folder, {"/apis/spotladder.io/v1alpha1/capacitytiers": listed}) as file:
        answer = call(capsys, "plan", JOB, "--kubeconfig", file, "--hours", "5", "--runs", "1", "-o", "json")
    assert (answer.code, answer.err) == (0, "")
    found: dict[str, Any] = json.loads(answer.out)
    return found


def test_the_runs_use_the_statistics_of_the_capacity_tiers(capsys: Capture, tmp_path: Path) -> None:
    found = planned(capsys, tmp_path, STATUS)
    assert found["tiers"][0]["evictionsPerNodeHour"] == 0.3
    simulated = found["simulation"]
    assert simulated["observations"] == ["spot: 12 losses in 40 node-hours, 0.3 per node and hour (95 %: 0.15 to 0.52)"]
    said = "\n".join(simulated["assumptions"])
    assert "requests for nodes" not in said, "their availability was observed"
    assert "a node of spot is ready after" not in said, "jobs waited for two minutes"
    assert simulated["extraUsd"]["heads"] > 0.4


def test_without_statistics_the_runs_assume_those_of_public_traces(capsys: Capture, tmp_path: Path) -> None:
    rate = {"evictionsPerNodeHour": "0.3", "observedHours": "40"}
    said = "\n".join(planned(capsys, tmp_path, rate)["simulation"]["assumptions"])
    assert "public spot traces\n" in said
    assert "a request that fails waits 1h beyond provisionTimeout" in said
    assert "requests for nodes on spot always succeed: their capacity is unknown" in said
