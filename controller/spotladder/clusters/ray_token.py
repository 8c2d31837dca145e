"""The token that the dashboard of a Ray cluster requires of every request. KubeRay keeps it in a Secret."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from spotladder.clusters.errors import Forbidden
from spotladder.resources import SECRETS

if TYPE_CHECKING:
    from spotladder.clusters.client import Client

HEADER = "X-Ray-Authorization"
"""Ray's header for requests through a proxy that uses Authorization itself."""


async def token_headers(client: Client, namespace: str, source: tuple[str, str] | None) -> dict[str, str]:
    """The headers of a request to the dashboard of a head whose token is in `source`: the name of a Secret, and the
    key. Empty without token authentication.

    Raises Forbidden, with the remedy, if the Secret must not be read.
    """
    if source is None:
        return {}
    name, key = source
    try:
        secret = await client.get(SECRETS, name, namespace)
    except Forbidden as error:
        message = f"the token of its dashboard is in Secret {namespace}/{name}: allow get on secrets"
        raise Forbidden(error.status, error.reason, message) from None
    token = base64.b64decode(str((secret.get("data") or {}).get(key, ""))).decode()
    return {HEADER: f"Bearer {token}"}
