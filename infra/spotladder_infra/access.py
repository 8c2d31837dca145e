"""How kubectl and helm reach a cluster of the fleet."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotladder.errors import EnvironmentFailure
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Target:
    """A context of a kubeconfig. `kubeconfig` is a path, or several as in the variable KUBECONFIG."""

    kubeconfig: str
    context: str

    def environment(self) -> dict[str, str]:
        """What makes kubectl and helm use it, beside `--context`."""
        return {"KUBECONFIG": self.kubeconfig}


def target(fleet: Fleet, cluster: Cluster, state: Path) -> Target:
    """The user's kubeconfig for a cluster that exists; for one that was created, a kubeconfig below `state`.

    The kubeconfig that is written holds an address and the cloud's own program for tokens, and no credentials.

    Raises:
        EnvironmentFailure: The cloud does not know the cluster, or cannot be asked.
    """
    if cluster.cloud in (Cloud.EXISTING, Cloud.KIND):
        return Target(_users_kubeconfig(), cluster.context or f"kind-{cluster.name}")
    path = (state / "kubeconfig" / f"{fleet.metadata.name}-{cluster.name}.json").absolute()
    found = _eks(cluster) if cluster.cloud is Cloud.AWS else _gke(cluster)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        written = path.with_suffix(f".{os.getpid()}")
        written.touch(mode=0o600)
        written.write_text(text, encoding="utf-8")
        written.replace(path)
    return Target(str(path), cluster.name)


def _users_kubeconfig() -> str:
    return os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())


def _eks(cluster: Cluster) -> dict[str, Any]:
    try:
        import boto3  # noqa: PLC0415 – slow to import, and only for clusters on AWS
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    except ImportError:
        raise EnvironmentFailure(
            "the package boto3 is missing: install it with pip install 'spotladder[aws]'"
        ) from None
    try:
        client = boto3.client("eks", region_name=cluster.region)
        found = client.describe_cluster(name=cluster.name)["cluster"]
    except (BotoCoreError, ClientError) as error:
        raise EnvironmentFailure(
            f"cluster {cluster.name}: EKS in {cluster.region} does not describe it: {error}: apply its stack first, "
            "and check the credentials of this shell (aws sts get-caller-identity)"
        ) from None
    arguments = [
        "--region",
        str(cluster.region),
        "eks",
        "get-token",
        "--cluster-name",
        cluster.name,
        "--output",
        "json",
    ]
    authority = found.get("certificateAuthority", {}).get("data")
    return kubeconfig(cluster.name, found["endpoint"], authority, "aws", arguments)


def _gke(cluster: Cluster) -> dict[str, Any]:
    try:
        from google.api_core.exceptions import GoogleAPICallError  # noqa: PLC0415 – only for clusters on Google Cloud
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415
        from google.cloud import container_v1  # noqa: PLC0415
    except ImportError:
        raise EnvironmentFailure(
            "the package google-cloud-container is missing: install it with pip install 'spotladder[gcp]'"
        ) from None
    name = f"projects/{cluster.project}/locations/{cluster.region}/clusters/{cluster.name}"
    try:
        found = container_v1.ClusterManagerClient().get_cluster(name=name)
    except (GoogleAPICallError, GoogleAuthError) as error:
        raise EnvironmentFailure(
            f"cluster {cluster.name}: GKE does not describe {name}: {error}: apply its stack first, and check the "
            "credentials of this shell (gcloud auth application-default login)"
        ) from None
    endpoint = found.control_plane_endpoints_config.dns_endpoint_config.endpoint
    return kubeconfig(cluster.name, f"https://{endpoint}", None, "gke-gcloud-auth-plugin", [])


def kubeconfig(name: str, server: str, authority: str | None, program: str, arguments: list[str]) -> dict[str, Any]:
    """A kubeconfig of one cluster whose tokens come from a program. `authority` is base64; None for a public one."""
    trusted = {} if authority is None else {"certificate-authority-data": authority}
    execute = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": program,
        "args": arguments,
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": program == "gke-gcloud-auth-plugin",
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, **trusted}}],
        "users": [{"name": name, "user": {"exec": execute}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
