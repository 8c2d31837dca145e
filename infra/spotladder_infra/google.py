"""Google Cloud's REST APIs, with the application default credentials of the shell.

The endpoints may be replaced by the variables that Terraform's provider reads as well: GOOGLE_COMPUTE_CUSTOM_ENDPOINT,
GOOGLE_STORAGE_CUSTOM_ENDPOINT and GOOGLE_CONTAINER_CUSTOM_ENDPOINT.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from spotladder.errors import EnvironmentFailure

COMPUTE = "GOOGLE_COMPUTE_CUSTOM_ENDPOINT"
STORAGE = "GOOGLE_STORAGE_CUSTOM_ENDPOINT"
CONTAINER = "GOOGLE_CONTAINER_CUSTOM_ENDPOINT"
ENDPOINTS: Mapping[str, str] = {
    COMPUTE: "https://compute.googleapis.com/compute/v1/",
    STORAGE: "https://storage.googleapis.com/storage/v1/",
}
TIMEOUT = 15.0
"""Seconds for one request."""

_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_LOGIN = "check the credentials of this shell (gcloud auth application-default login)"


class Refused(EnvironmentFailure):
    """An answer that is an error. `status` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Google:
    """Google's APIs with one identity. Raises EnvironmentFailure when there is none, or google-auth is missing."""

    def __init__(self) -> None:
        try:
            import google.auth  # noqa: PLC0415 – slow to import, and only for fleets on Google Cloud
            from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415
            from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415
        except ImportError:
            raise EnvironmentFailure(
                "the package google-auth is missing: install it with pip install 'spotladder[gcp]'"
            ) from None
        try:
            self._credentials, self.project = google.auth.default(scopes=_SCOPES)
        except GoogleAuthError as error:
            raise EnvironmentFailure(f"Google Cloud: {_line(error)}: {_LOGIN}") from None
        self._session = AuthorizedSession(self._credentials)

    def call(self, endpoint: str, method: str, path: str, body: Any = None, **parameters: str) -> dict[str, Any]:
        """The JSON that a request answers.

        Args:
            endpoint: One of `ENDPOINTS`.
            parameters: Of the query.

        Raises:
            Refused: The answer is an error.
            EnvironmentFailure: There is no answer.
        """
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415
        from requests import RequestException  # noqa: PLC0415 – google-auth brings it

        url = (os.environ.get(endpoint) or ENDPOINTS[endpoint]).rstrip("/") + "/" + path
        try:
            answer = self._session.request(method, url, json=body, params=parameters, timeout=TIMEOUT)
        except (GoogleAuthError, RequestException) as error:
            raise EnvironmentFailure(f"Google Cloud: {_line(error)}: {_LOGIN}") from None
        if answer.ok:
            found: dict[str, Any] = answer.json()
            return found
        raise Refused(answer.status_code, f"Google Cloud refuses {method} {path}: {_reason(answer)}")

    def find(self, endpoint: str, path: str, **parameters: str) -> dict[str, Any] | None:
        """What is at that path; None when nothing is. Raises as `call` does."""
        try:
            return self.call(endpoint, "GET", path, **parameters)
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise

    def clusters(self) -> Any:
        """A client of the container API. Raises EnvironmentFailure."""
        try:
            from google.cloud.container_v1 import ClusterManagerClient  # noqa: PLC0415 – takes a second to import
            from google.cloud.container_v1.services.cluster_manager.transports import (  # noqa: PLC0415
                ClusterManagerRestTransport,
            )
        except ImportError:
            raise EnvironmentFailure(
                "the package google-cloud-container is missing: install it with pip install 'spotladder[gcp]'"
            ) from None
        custom = os.environ.get(CONTAINER)
        if not custom:
            return ClusterManagerClient(credentials=self._credentials)
        where = urlsplit(custom)
        return ClusterManagerClient(
            transport=ClusterManagerRestTransport(
                host=where.netloc, url_scheme=where.scheme, credentials=self._credentials
            )
        )


def _reason(answer: Any) -> str:
    try:
        return f"{answer.status_code} {_line(answer.json()['error']['message'])}"
    except (ValueError, KeyError, TypeError):
        return f"{answer.status_code} {answer.reason}"


def _line(text: object) -> str:
    return " ".join(str(text).split())
