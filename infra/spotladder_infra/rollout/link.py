"""Gives the controller in the home cluster a kubeconfig of a member cluster, with a token of a service account in that
cluster."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from spotladder_infra.kubecontext import kubeconfig
from spotladder_infra.names import kubeconfig_secret
from spotladder_infra.rollout.components import SYSTEM
from spotladder_infra.rollout.tools import Object, Tools

TOKEN_SECRET = "spotladder-token"  # noqa: S105 – the name of a Secret
ADDRESS = ("server", "tls-server-name", "proxy-url")
"""Fields that are copied from the user's kubeconfig to the controller's."""

AUTHORITY = ("certificate-authority-data", "certificate-authority", "insecure-skip-tls-verify")
"""Fields of a kubeconfig for a server whose certificate is not of a public authority."""

LONGEST_WAIT = "30s"
"""Time in which the cluster creates a new token."""


def link(home: Tools, member: Tools, cluster: str) -> None:
    """Writes the Secret in the home cluster. The token is neither printed nor kept in the rollout's state.

    A server that the user's kubeconfig trusts without an authority of its own, such as the DNS endpoint of GKE, has a
    certificate of a public one: the cluster's authority would not verify it.

    Raises:
        EnvironmentFailure: The token or the address of the API server is missing.
    """
    data = _token(member)
    view = json.loads(member.kubectl("config", "view", "--minify", "--raw", "-o", "json"))
    given = view["clusters"][0]["cluster"]
    address = {key: value for key, value in given.items() if key in ADDRESS}
    if any(key in given for key in AUTHORITY):
        address["certificate-authority-data"] = data["ca.crt"]
    written = kubeconfig(cluster, address, {"token": base64.b64decode(data["token"]).decode()})
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": kubeconfig_secret(cluster),
            "namespace": SYSTEM,
            "labels": {"app.kubernetes.io/part-of": "spotladder"},
        },
        "stringData": {"kubeconfig": json.dumps(written)},
    }
    home.apply(json.dumps(secret))


def unlink(home: Tools, clusters: Sequence[str]) -> None:
    """Deletes the Secrets of these clusters in the home cluster. Does nothing for those that have none."""
    if clusters:
        names = [kubeconfig_secret(name) for name in clusters]
        home.kubectl("delete", "secret", *names, "--namespace", SYSTEM, "--ignore-not-found")


def _token(member: Tools) -> Object:
    """The token and the authority of the cluster, when its token controller has written them."""
    where = ("secret", TOKEN_SECRET, "--namespace", SYSTEM)
    member.kubectl("wait", "--for=jsonpath={.data.token}", *where, f"--timeout={LONGEST_WAIT}")
    found: Object = (member.get(*where) or {})["data"]
    return found
