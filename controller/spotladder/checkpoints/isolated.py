"""Uses credentials in isolation from the identity of the process.

Otherwise the library completes the given credentials from the process's environment: it would combine a key with
another identity's session token, or prefer a federated identity over a token for shared access.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from spotladder.checkpoints.store import StoreRefused


def options(scheme: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of the library's store that keep it from looking for other credentials. Raises StoreRefused for
    credentials that cannot be isolated."""
    match scheme:
        case "s3":
            return _provided(
                access_key_id=given["AWS_ACCESS_KEY_ID"],
                secret_access_key=given["AWS_SECRET_ACCESS_KEY"],
                token=given.get("AWS_SESSION_TOKEN"),
            )
        case "az" if key := given.get("AZURE_STORAGE_ACCOUNT_KEY"):
            return _provided(access_key=key)
        case "az" if token := given.get("AZURE_STORAGE_SAS_TOKEN"):
            return _provided(sas_token=token)
        case "az" if os.environ.get("AZURE_FEDERATED_TOKEN_FILE"):
            raise StoreRefused(
                "AZURE_CLIENT_SECRET cannot be used by a process with a workload identity, which takes precedence: set "
                "AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN"
            )
        case _:
            return {}  # Given credentials take precedence over the environment.


def _provided(**credentials: str | None) -> dict[str, Any]:
    provider: Callable[[], dict[str, str | None]] = lambda: {**credentials, "expires_at": None}  # noqa: E731
    return {"credential_provider": provider}
