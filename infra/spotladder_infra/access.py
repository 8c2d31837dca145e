"""Access to a cluster of the fleet for kubectl and helm."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from spotladder.atomic import write_text
from spotladder.errors import EnvironmentFailure, InvalidSpec
from spotladder.extras import require
from spotladder.timestamps import utc_timestamp
from spotladder_infra.amazon import CREDENTIALS, answering, sdk
from spotladder_infra.google import Google
from spotladder_infra.kubecontext import KubeContext, kubeconfig
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet


def target(fleet: Fleet, cluster: Cluster, state: Path) -> KubeContext:
    """The context of a cluster: in the user's kubeconfig for cloud `existing` and `kind`, else in one below `state`.

    This function writes the kubeconfig below `state`. It has the address of the API server and the command that prints
    a token, and no credentials.

    Raises:
        EnvironmentFailure: The cloud does not know the cluster, or does not respond.
    """
    if cluster.cloud in (Cloud.EXISTING, Cloud.KIND):
        return KubeContext(_users_kubeconfig(), cluster.context or f"kind-{cluster.name}")
    path = (state / "kubeconfig" / f"{fleet.metadata.name}-{cluster.name}.json").absolute()
    found = _eks(cluster) if cluster.cloud is Cloud.AWS else _gke(cluster)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text, mode=0o600)
    return KubeContext(str(path), cluster.name)


def _users_kubeconfig() -> str:
    return os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())


def _eks(cluster: Cluster) -> dict[str, Any]:
    remedy = f"apply its stack first, and {CREDENTIALS}"
    with answering(f"cluster {cluster.name}: EKS in {cluster.region} does not describe it", remedy):
        client = sdk().client("eks", region_name=cluster.region)
        found = client.describe_cluster(name=cluster.cloud_name)["cluster"]
    authority = found.get("certificateAuthority", {}).get("data")
    trusted = {} if authority is None else {"certificate-authority-data": authority}
    return _with_tokens(cluster, found["endpoint"], **trusted)


def _gke(cluster: Cluster) -> dict[str, Any]:
    found = Google().cluster(cluster.project or "", cluster.location, cluster.cloud_name)
    if found is None:
        raise EnvironmentFailure(f"cluster {cluster.name}: is not in project {cluster.project}: apply its stack first")
    endpoint = found.get("controlPlaneEndpointsConfig", {}).get("dnsEndpointConfig", {}).get("endpoint")
    if not endpoint:
        raise EnvironmentFailure(f"cluster {cluster.name}: has no DNS endpoint yet: wait until its creation has ended")
    return _with_tokens(cluster, f"https://{endpoint}")


def _with_tokens(cluster: Cluster, server: str, **trusted: str) -> dict[str, Any]:
    """A kubeconfig of a cluster with a stack, whose tokens `spotladder infra token` makes. `trusted` are fields for a
    certificate that not every machine trusts.
    """
    execute = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": _program(),
        "args": ["infra", "token", str(cluster.cloud), cluster.cloud_name, str(cluster.region)],
        "interactiveMode": "Never",
        "provideClusterInfo": False,
    }
    return kubeconfig(cluster.name, {"server": server, **trusted}, {"exec": execute})


def merged(clusters: Sequence[Cluster]) -> dict[str, Any]:
    """One kubeconfig for several clusters with a stack; the first one is the current context.

    Raises:
        EnvironmentFailure: A cloud does not know a cluster, or does not respond.
    """
    found = [_eks(cluster) if cluster.cloud is Cloud.AWS else _gke(cluster) for cluster in clusters]
    lists = {name: [entry for one in found for entry in one[name]] for name in ("clusters", "users", "contexts")}
    return {**found[0], **lists}


def credential(cloud: str, cluster: str, region: str) -> dict[str, Any]:
    """An ExecCredential with a token for the API server of a cluster.

    Raises:
        InvalidSpec: There is no such cloud.
        EnvironmentFailure: There are no credentials, or a package is missing.
    """
    if cloud == Cloud.AWS:
        token, expires = _eks_token(cluster, region)
    elif cloud == Cloud.GCP:
        token, expires = _gke_token(cluster)
    else:
        raise InvalidSpec(f"expected cloud aws or gcp, got {cloud!r}")
    return {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {"token": token, "expirationTimestamp": utc_timestamp(expires.timestamp())},
    }


def _eks_token(cluster: str, region: str) -> tuple[str, datetime]:
    require("aws", "boto3")
    from spotladder.clusters.clock import SystemClock  # noqa: PLC0415 – boto3 is slow to import
    from spotladder.clusters.eks import LASTS, Eks  # noqa: PLC0415

    expires = datetime.now(UTC) + timedelta(seconds=LASTS)
    with answering(f"no token for EKS cluster {cluster}", CREDENTIALS):
        token, _ = asyncio.run(Eks(cluster, region, clock=SystemClock()).token())
    return token, expires


def _gke_token(cluster: str) -> tuple[str, datetime]:
    require("gcp", "google.auth", "google.cloud.container_v1")
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 – only for clusters on Google Cloud

    from spotladder.clusters.gke import found_identity, token_of  # noqa: PLC0415

    try:
        identity = found_identity()
    except GoogleAuthError as error:
        raise EnvironmentFailure(f"no token for GKE cluster {cluster}: {' '.join(str(error).split())}") from None
    token, _ = asyncio.run(token_of(identity, cluster))
    expires = identity.expiry.replace(tzinfo=UTC) if identity.expiry else datetime.now(UTC) + timedelta(minutes=5)
    return token, expires


def _program() -> str:
    """This installation's `spotladder`: kubectl may run with another PATH."""
    own = Path(sys.executable).with_name("spotladder")
    return str(own) if own.exists() else "spotladder"
