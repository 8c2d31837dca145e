"""Creates the Secret with the token that the Ray clusters of a namespace require, see `rayjob.authentication`."""

from __future__ import annotations

import base64
import secrets

from spotladder.clusters.errors import Conflict, Forbidden, Invalid
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.inventory.clusters import WorkloadCluster
from spotladder.operator.reconcile.preflight import Preflight
from spotladder.resources import SECRETS
from spotladder.workloads import names
from spotladder.workloads.rayjob.authentication import KEY, TOKEN
from spotladder.workloads.references import Reference


async def ensure_token(cluster: WorkloadCluster, preflight: Preflight, namespace: str) -> Diagnosis | None:
    """Create the Secret unless it exists. Returns why it cannot be created.

    Raises ClusterUnreachable, Throttled.
    """
    exists = cluster.inventory.guards.exists(SECRETS, TOKEN, namespace)
    if exists is None:
        exists = await preflight.exists(cluster, namespace, Reference(SECRETS, TOKEN))
    if exists:
        return None
    body = {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {"name": TOKEN, "namespace": namespace, "labels": {names.MANAGED_BY: names.MANAGER}},
        "data": {KEY: base64.b64encode(secrets.token_urlsafe(32).encode()).decode()},
        "immutable": True,
    }
    try:
        cluster.inventory.written(SECRETS, await cluster.client.create(SECRETS, body))
    except Conflict:
        return None  # Another job's attempt created it in the meantime, or the controller may create but not read it.
    except (Forbidden, Invalid) as error:
        return Diagnosis(
            ConditionReason.LAUNCH_REFUSED,
            f"Secret {namespace}/{TOKEN} cannot be created{cluster.where}: {error.message}: allow it to "
            f"create and get the Secret, or create it with the key {KEY} and allow it to get it",
        )
    return None
