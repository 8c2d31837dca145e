"""The kubeconfig of a member cluster that the controller in the home cluster gets."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout.link import link
from spotladder_infra.rollout.tools import Tools

OWN_CA = base64.b64encode(b"the cluster's own authority").decode()


@dataclass(frozen=True)
class LinkedCluster(Tools):
    """kubectl of a cluster: its Secret with a token, and the part of the user's kubeconfig that describes it."""

    target: KubeContext = field(default_factory=lambda: KubeContext("kubeconfig", "west"))
    cluster: dict[str, Any] = field(default_factory=dict)
    applied: list[dict[str, Any]] = field(default_factory=list)

    def get(self, *_: str) -> dict[str, Any]:
        return {"data": {"token": base64.b64encode(b"a-token").decode(), "ca.crt": OWN_CA}}

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        if arguments[0] == "wait":
            return ""
        if arguments[0] == "config":
            return json.dumps({"clusters": [{"cluster": self.cluster}]})
        self.applied.append(json.loads(given or ""))
        return ""


@pytest.mark.parametrize(
    ("known", "authority"),
    [
        ({"certificate-authority-data": "other"}, OWN_CA),
        ({"certificate-authority": "/home/ana/ca.crt"}, OWN_CA),
        ({"insecure-skip-tls-verify": True}, OWN_CA),
        ({}, None),
    ],
)
def test_the_authority_is_that_of_the_server(known: dict[str, Any], authority: str | None) -> None:
    """The DNS endpoint of GKE has a certificate of a public authority, which a kubeconfig does not name."""
    server = "https://gke-1.us-central1.gke.goog"
    home, member = LinkedCluster(), LinkedCluster(cluster={"server": server, **known})
    link(home, member, "west")
    (secret,) = home.applied
    cluster = json.loads(secret["stringData"]["kubeconfig"])["clusters"][0]["cluster"]
    expected = {} if authority is None else {"certificate-authority-data": authority}
    assert cluster == {"server": server, **expected}
