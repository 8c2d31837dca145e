"""The token that the dashboard of a Ray cluster requires of every request. KubeRay keeps it in a Secret."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from spotladder.clusters.client import Client
from spotladder.clusters.errors import Forbidden
from spotladder.resources import PODS, SECRETS

HEADER = "X-Ray-Authorization"
"""Ray's header for requests through a proxy that uses Authorization itself."""

VARIABLE = "RAY_AUTH_TOKEN"


async def token_headers(client: Client, head: str, namespace: str) -> dict[str, str]:
    """The headers of a request to the dashboard of this head pod; empty without token authentication.

    Raises Forbidden, with the remedy, if the Secret must not be read.
    """
    pages = client.pages(PODS, namespace, fields=f"metadata.name={head}")
    sources = [source async for page in pages for pod in page.items for source in _sources(pod)]
    if not sources:
        return {}
    name, key = sources[0]["name"], sources[0]["key"]
    try:
        secret = await client.get(SECRETS, name, namespace)
    except Forbidden as error:
        message = f"the token of its dashboard is in Secret {namespace}/{name}: allow get on secrets"
        raise Forbidden(error.status, error.reason, message) from None
    token = base64.b64decode(str((secret.get("data") or {}).get(key, ""))).decode()
    return {HEADER: f"Bearer {token}"}


def _sources(pod: Any) -> Iterator[dict[str, str]]:
    for container in (pod.get("spec") or {}).get("containers") or ():
        for variable in container.get("env") or ():
            source = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if variable.get("name") == VARIABLE and source:
                yield source
